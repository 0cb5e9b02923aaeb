//! The result's bytes depend on the source and the options that say so, never on threads, memory or verification.

use crate::common::{
    checkpoint::{Layout, Tensor},
    result::ResultFile,
    weights,
    world::{SMALL_BUDGET, World},
};
use df11_codec::{ExponentHistogram, Kernel, UnitCode};
use df11_file::{
    Options,
    budget::Budget,
    options::{HeaderMode, Verify},
};

/// More than two spans of the smallest budget.
const LARGE: usize = 20_000_000;

fn span_weights(options: &Options, unit: usize) -> usize {
    Budget::new(options, unit as u64).unwrap().span_weights as usize
}

#[test]
fn threads_memory_and_verification_change_no_byte() {
    let all = weights::realistic(1, LARGE);
    let (a, rest) = all.split_at(18_000_002);
    let (b, c) = rest.split_at(2);
    let world = World::with_layout(
        vec![
            Tensor::bf16("three.0.c.weight", c.to_vec()),
            Tensor::f32("norm.weight", &[0.1; 1000]),
            Tensor::bf16("three.0.a.weight", a.to_vec()),
            Tensor::bf16("one.0.weight", weights::realistic(2, 300_001)),
            Tensor::bf16("three.0.b.weight", b.to_vec()),
        ],
        &Layout {
            odd: true,
            reversed_data: true,
            ..Layout::default()
        },
    );
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let run = |threads: usize, max_memory: u64, verify: Verify| {
            world.result(Options {
                header,
                verify,
                threads: Some(threads),
                max_memory: Some(max_memory),
                ..world.options()
            })
        };
        let first = run(1, 1 << 30, Verify::Full);
        for (threads, memory, verify) in [
            (1, SMALL_BUDGET, Verify::Off),
            (2, SMALL_BUDGET, Verify::Full),
            (7, SMALL_BUDGET, Verify::Full),
            (2, 1 << 30, Verify::Off),
            (7, 1 << 30, Verify::Full),
        ] {
            assert!(
                run(threads, memory, verify) == first,
                "{threads} threads, {memory} bytes"
            );
        }
        let result = ResultFile::parse(&first);
        result.assert_unit("three.0", &all);
        result.assert_unit("one.0", &weights::realistic(2, 300_001));
        let splits: Vec<u8> = [9_000_001_u64, 9_000_002]
            .iter()
            .flat_map(|at| at.to_le_bytes())
            .collect();
        assert_eq!(result.bytes("three.0.split_positions"), splits);
        assert!(result.bytes("one.0.split_positions").is_empty());
    }
    world.assert_clean();
}

/// Weights of which the first `at` take a number of bits that leaves `rest` when divided by a kernel chunk's: weights before and after
/// `at` change places, so the code stays the same.
fn tuned(n: usize, at: usize, rest: u64) -> Vec<u8> {
    let mut weights = weights::realistic(rest, n);
    let count = |weights: &[u8]| {
        let mut histogram = ExponentHistogram::default();
        histogram.count(Kernel::Scalar, weights);
        histogram
    };
    let code = UnitCode::new(&count(&weights), 122).unwrap();
    let bits = code.bits_of(&count(&weights[..at * 2]));
    let missing = (rest + (1 << 15) - bits % (1 << 15)) % (1 << 15);
    // 122 has one bit and 121 two.
    let exponent =
        |weights: &[u8], index: usize| weights[index * 2 + 1] << 1 | weights[index * 2] >> 7;
    let before: Vec<_> = (0..at)
        .filter(|&index| exponent(&weights, index) == 122)
        .take(missing as usize)
        .collect();
    let after: Vec<_> = (at..n)
        .filter(|&index| exponent(&weights, index) == 121)
        .take(missing as usize)
        .collect();
    for (one, two) in before.into_iter().zip(after) {
        weights.swap(one * 2, two * 2);
        weights.swap(one * 2 + 1, two * 2 + 1);
    }
    assert_eq!(code.bits_of(&count(&weights[..at * 2])) % (1 << 15), rest);
    weights
}

/// A span's end is also a piece's end. Around a kernel chunk's border, what the last codes of the span and the first gap of the next
/// chunk write is in bytes that the next span finishes, and verification reads them before that.
#[test]
fn spans_that_end_at_every_place_around_a_chunk_border() {
    let world = World::of_unit(vec![0; 2]);
    let options = Options {
        threads: Some(1),
        ..world.small()
    };
    let n = span_weights(&options, 11_000_000) + 200_000;
    let at = span_weights(&options, n);
    assert!(at < n);
    for rest in [0, 1, 2, 3, 5, 8, 9, 63, 64, 65, (1 << 15) - 1] {
        let weights = tuned(n, at, rest);
        let world = World::of_unit(weights.clone());
        let options = Options {
            definitions: world.options().definitions,
            ..options.clone()
        };
        let result = ResultFile::parse(&world.result(options));
        result.assert_unit("one.0", &weights);
    }
}

/// Reads: once where every unit fits, twice where one does not, once more for an official header.
#[test]
fn the_source_is_read_once_or_twice() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(3, 12_000_000)),
        Tensor::bf16("one.1.weight", weights::realistic(4, 1_000_000)),
        Tensor::f32("norm.weight", &[1.0; 500]),
    ]);
    // The marker is two bytes of passthrough.
    let (large, small, copied) = (24_000_000, 2_000_000, 2000 + 2);
    let cases = [
        (1 << 30, HeaderMode::SelfDescribing, large + small + copied),
        (
            SMALL_BUDGET,
            HeaderMode::SelfDescribing,
            2 * large + small + copied,
        ),
        (1 << 30, HeaderMode::Official, 2 * (large + small) + copied),
        (
            SMALL_BUDGET,
            HeaderMode::Official,
            2 * (large + small) + copied,
        ),
    ];
    for (max_memory, header, expected) in cases {
        let options = Options {
            header,
            max_memory: Some(max_memory),
            ..world.options()
        };
        let report = world.run(options).unwrap();
        assert_eq!(report.bytes_read, expected, "{max_memory} {header:?}");
        let reads: u64 = report
            .units
            .iter()
            .map(|unit| u64::from(unit.reads) * unit.bf16_bytes)
            .sum();
        assert_eq!(reads + copied, expected);
        std::fs::remove_file(world.target()).unwrap();
    }
}
