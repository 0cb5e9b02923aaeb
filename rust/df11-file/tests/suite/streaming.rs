//! The result's tensors depend on the source and the options that say so, never on threads, memory or verification.

use crate::common::{
    checkpoint::{Layout, Tensor},
    result::ResultFile,
    weights,
    world::{SMALL_BUDGET, World},
};
use df11_codec::{ExponentHistogram, Kernel, UnitCode, limits::CHUNK_BITS};
use df11_file::{
    Options,
    budget::{Budget, PIECE_WEIGHTS},
    options::{HeaderMode, Io, Verify},
};

/// More than the spans of the smallest budget hold together.
const LARGE: usize = 22_000_000;

fn span_weights(options: &Options, unit: usize) -> usize {
    Budget::new(options, unit as u64).unwrap().span_weights as usize
}

/// What stands behind a file's header.
fn data(file: &[u8]) -> &[u8] {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap());
    &file[8 + length as usize..]
}

#[test]
fn threads_memory_io_and_verification_change_no_tensor() {
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
        let run = |threads: usize, max_memory: u64, io: Io, verify: Verify| {
            world.result(Options {
                header,
                verify,
                io,
                threads: Some(threads),
                max_memory: Some(max_memory),
                ..world.options()
            })
        };
        let first = run(1, 1 << 30, Io::Sequential, Verify::Full);
        for (threads, memory, io, verify) in [
            (1, SMALL_BUDGET, Io::Auto, Verify::Off),
            (2, SMALL_BUDGET, Io::Parallel, Verify::Full),
            (7, SMALL_BUDGET, Io::Sequential, Verify::Full),
            (2, 1 << 30, Io::Auto, Verify::Off),
            (7, 1 << 30, Io::Parallel, Verify::Full),
        ] {
            let other = run(threads, memory, io, verify);
            // A self-describing header says whether the file was verified.
            let same = if verify == Verify::Off && header == HeaderMode::SelfDescribing {
                data(&other) == data(&first)
            } else {
                other == first
            };
            assert!(
                same,
                "{threads} threads, {memory} bytes, {io:?}, {verify:?}"
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

/// Weights of two spans of which the first holds `at`. Its end: a long code that reaches `over` bits past a kernel chunk's border, then
/// `after` codes of one bit. Weights only change places, so the code stays the same.
fn reaching_over(n: usize, at: usize, over: u64, after: usize) -> Vec<u8> {
    let mut weights = weights::realistic(over, n);
    let exponent =
        |weights: &[u8], index: usize| weights[index * 2 + 1] << 1 | weights[index * 2] >> 7;
    let swap = |weights: &mut [u8], a: usize, b: usize| {
        weights.swap(a * 2, b * 2);
        weights.swap(a * 2 + 1, b * 2 + 1);
    };
    let find = |weights: &[u8], from: usize, wanted: u8| {
        (from..n)
            .find(|&index| exponent(weights, index) == wanted)
            .unwrap()
    };
    let long = at - 1 - after;
    let other = find(&weights, at, 110);
    swap(&mut weights, long, other);
    for index in long + 1..at {
        let other = find(&weights, at, 122);
        swap(&mut weights, index, other);
    }
    let count = |weights: &[u8]| {
        let mut histogram = ExponentHistogram::default();
        histogram.count(Kernel::Scalar, weights);
        histogram
    };
    let code = UnitCode::new(&count(&weights), exponent(&weights, n - 1)).unwrap();
    let rest = over + after as u64;
    let bits = code.bits_of(&count(&weights[..at * 2])) % CHUNK_BITS;
    let missing = ((rest + CHUNK_BITS - bits) % CHUNK_BITS) as usize;
    // 122 has one bit and 121 two.
    let before: Vec<_> = (0..long)
        .filter(|&index| exponent(&weights, index) == 122)
        .take(missing)
        .collect();
    let behind: Vec<_> = (at..n - 1)
        .filter(|&index| exponent(&weights, index) == 121)
        .take(missing)
        .collect();
    for (one, two) in before.into_iter().zip(behind) {
        swap(&mut weights, one, two);
    }
    assert_eq!(code.bits_of(&count(&weights[..at * 2])) % CHUNK_BITS, rest);
    weights
}

/// Close behind a kernel chunk's border, what the last codes of a piece and the first gap of the next chunk write is in bytes that the
/// next piece finishes, and verification reads them before that: at a span's end, and while the span is being encoded.
#[test]
fn pieces_that_end_close_behind_a_chunk_border() {
    let options = |world: &World| Options {
        threads: Some(1),
        ..world.small()
    };
    let empty = World::of_unit(vec![0; 2]);
    let n = span_weights(&options(&empty), LARGE) + 200_000;
    let span = span_weights(&options(&empty), n);
    assert!(span < n);
    let ends = [
        (0, 0),
        (1, 0),
        (3, 0),
        (7, 0),
        (8, 0),
        (9, 0),
        (11, 0),
        (5, 20),
        (5, 58),
        (5, 59),
    ];
    let at_span = ends.map(|end| (n, span, end));
    let at_piece = ends.map(|end| (700_000, PIECE_WEIGHTS as usize, end));
    for (n, at, (over, after)) in at_span.into_iter().chain(at_piece) {
        let weights = reaching_over(n, at, over, after);
        let world = World::of_unit(weights.clone());
        let result = ResultFile::parse(&world.result(options(&world)));
        result.assert_unit("one.0", &weights);
    }
}

/// Reads: once where every unit fits, twice where one does not, once more for an official header.
#[test]
fn the_source_is_read_once_or_twice() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(3, LARGE)),
        Tensor::bf16("one.1.weight", weights::realistic(4, 1_000_000)),
        Tensor::f32("norm.weight", &[1.0; 500]),
    ]);
    // The marker is two bytes of passthrough.
    let (large, small, copied) = (2 * LARGE as u64, 2_000_000, 2000 + 2);
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
    let ios = [Io::Auto, Io::Sequential, Io::Parallel];
    for ((max_memory, header, expected), io) in
        cases.into_iter().flat_map(|case| ios.map(|io| (case, io)))
    {
        let options = Options {
            header,
            io,
            max_memory: Some(max_memory),
            ..world.options()
        };
        assert_eq!(options.verify, Verify::Full);
        let report = world.run(options).unwrap();
        assert_eq!(
            report.bytes_read, expected,
            "{max_memory} {header:?} {io:?}"
        );
        let reads: u64 = report
            .units
            .iter()
            .map(|unit| u64::from(unit.reads) * unit.bf16_bytes)
            .sum();
        assert_eq!(reads + copied, expected);
        std::fs::remove_file(world.target()).unwrap();
    }
}
