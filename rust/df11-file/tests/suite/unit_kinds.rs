//! Units of every kind, through the whole pipeline.

use crate::common::{
    checkpoint::Tensor,
    result::ResultFile,
    weights,
    world::{SMALL_BUDGET, World},
};
use df11_file::{
    CastReport, Code, Options,
    options::{Cast, HeaderMode},
};

/// More than the spans of the smallest budget hold together.
const LARGE: usize = 22_000_000;

/// Compresses units and checks them; gives each unit's code name and notes.
fn check(units: &[Vec<u8>], options: impl Fn(&World) -> Options) -> Vec<(String, String)> {
    let tensors = units.iter().enumerate();
    let tensors = tensors
        .map(|(index, weights)| Tensor::bf16(&format!("one.{index}.weight"), weights.clone()));
    let world = World::new(tensors.collect());
    let report = world.run(options(&world)).unwrap();
    let result = ResultFile::read(&world.target());
    for (index, weights) in units.iter().enumerate() {
        result.assert_unit(&format!("one.{index}"), weights);
    }
    let seen = |unit: &df11_file::UnitReport| (unit.code.clone(), unit.notes.join("; "));
    report.units.iter().map(seen).collect()
}

#[test]
fn few_weights_and_sizes_around_pieces() {
    let piece = df11_file::budget::PIECE_WEIGHTS as usize;
    let sizes = [
        1,
        2,
        3,
        7,
        8,
        9,
        255,
        piece - 1,
        piece,
        piece + 1,
        2 * piece,
        3 * piece + 1,
    ];
    let units: Vec<_> = sizes
        .iter()
        .map(|&n| weights::realistic(n as u64, n))
        .collect();
    for (code, _) in check(&units, World::options) {
        assert_eq!(code, "official");
    }
}

#[test]
fn streams_that_end_around_a_chunk_border() {
    // One exponent: one bit a weight. Two halves: two bits.
    let units: Vec<_> = [8184, 8185, 8191, 8192, 8193, 16383, 16384, 16385]
        .iter()
        .map(|&n| weights::by(n as u64, n, |index, _| [118, 119, 120][index % 3]))
        .collect();
    check(&units, World::options);
}

#[test]
fn one_exponent_keeps_its_code_as_long_as_the_kernel_can_launch() {
    let units = [23_550, 23_551, 100_000].map(|n| weights::constant(1, n));
    let seen = check(&units, World::options);
    assert_eq!(seen[0].0, "official");
    assert!(seen[0].1.contains("crashes"), "{}", seen[0].1);
    for (code, notes) in &seen[1..] {
        assert_eq!(code, "two-bit");
        assert!(notes.contains("nearly constant"), "{notes}");
    }
}

#[test]
fn near_constant_units_of_several_spans() {
    let units = [
        weights::near_constant(1, LARGE, 30_000),
        weights::constant(2, LARGE),
        // A one-bit code that fills no chunk: the probe must say no.
        weights::near_constant(3, LARGE, 2),
    ];
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let seen = check(&units, |world| Options {
            header,
            ..world.small()
        });
        let codes: Vec<_> = seen.iter().map(|(code, _)| code.as_str()).collect();
        assert_eq!(codes, ["two-bit", "two-bit", "official"]);
    }
}

#[test]
fn more_than_seventeen_tables() {
    let units = [
        weights::many_tables(1, 200_000),
        weights::many_tables(2, LARGE),
    ];
    for (code, notes) in check(&units, World::small) {
        assert_eq!(code, "flattened");
        assert!(notes.contains("more decode tables"), "{notes}");
    }
}

#[test]
fn a_unit_that_grows_is_named() {
    let notes = check(&[weights::noise(1, 50_000)], World::options)
        .remove(0)
        .1;
    assert!(notes.contains("larger than its BF16"), "{notes}");
}

/// Round to nearest, ties to even.
fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let (high, low) = ((bits >> 16) as u16, bits & 0xFFFF);
    let up = low > 0x8000 || (low == 0x8000 && high & 1 == 1);
    high + u16::from(up)
}

#[test]
fn an_f32_unit_is_refused_or_rounded() {
    let mut random = weights::Random(5);
    let values: Vec<f32> = (0..600_001)
        .map(|index| match index % 4 {
            // Some already are BF16 values.
            0 => f32::from_bits(0x3F80_0000 + ((index as u32 / 4 % 128) << 16)),
            _ => f32::from_bits(0x3C00_0000 + (random.next() as u32 & 0x00FF_FFFF)),
        })
        .collect();
    let world = World::new(vec![
        Tensor::f32("three.0.a.weight", &values),
        Tensor::bf16("three.0.b.weight", vec![0x80, 0x3F]),
        Tensor::new(
            "three.0.c.weight",
            "F16",
            &[2],
            vec![0x00, 0x3C, 0x01, 0x00],
        ),
    ]);
    let error = world.run(world.options()).unwrap_err();
    assert_eq!(error.code, Code::Dtype);
    assert_eq!(error.unit.as_deref(), Some("three.0"));
    assert_eq!(error.tensor.as_deref(), Some("three.0.a.weight"));
    assert!(error.hint.contains("to-bf16"));

    let options = Options {
        cast: Cast::ToBf16,
        max_memory: Some(SMALL_BUDGET),
        ..world.options()
    };
    let report = world.run(options).unwrap();
    let mut expected: Vec<u8> = values
        .iter()
        .flat_map(|&value| to_bf16(value).to_le_bytes())
        .collect();
    // The smallest F16 is 2^-24.
    expected.extend([0x80, 0x3F, 0x80, 0x3F, 0x80, 0x33]);
    ResultFile::read(&world.target()).assert_unit("three.0", &expected);
    let is_rounded = |value: &&f32| value.to_bits() & 0xFFFF != 0;
    let changed = values.iter().filter(is_rounded).count() as u64;
    let shares = values.iter().map(|&value| {
        let after = f32::from_bits(u32::from(to_bf16(value)) << 16);
        f64::from((after - value) / value).abs()
    });
    let largest = shares.fold(0.0, f64::max);
    let cast = report.cast.unwrap();
    // The two F16 values, 1 and 2^-24, are BF16 values too.
    assert_eq!((cast.tensors, cast.changed_tensors), (2, 1));
    assert_eq!((cast.values, cast.changed_values), (600_003, changed));
    assert_eq!((cast.to_infinity, cast.to_zero), (0, 0));
    assert!((cast.largest_relative_change - largest).abs() < 1e-8);
    let note = format!(
        "rounding 2 tensors to BF16 changed {changed} of their 600003 values, in 1 tensors, by at most {:.2} %",
        largest * 100.0
    );
    assert!(report.notes.contains(&note), "{:?}", report.notes);
    assert_eq!(report.bytes_read, values.len() as u64 * 4 + 2 + 4 + 2);
}

fn cast(world: &World, options: Options) -> (Option<CastReport>, Vec<String>) {
    let cast = Options {
        cast: Cast::ToBf16,
        ..options
    };
    let report = world.run(cast).unwrap();
    (report.cast, report.notes)
}

#[test]
fn rounding_is_counted_once_for_each_tensor() {
    // Read twice: each value counts once all the same.
    let mut values = vec![1.0; LARGE];
    values[7] = 1e-45;
    values[LARGE - 1] = 1.001;
    let world = World::new(vec![Tensor::f32("one.0.weight", &values)]);
    let (found, notes) = cast(&world, world.small());
    let found = found.unwrap();
    assert_eq!((found.tensors, found.changed_tensors), (1, 1));
    assert_eq!((found.values, found.changed_values), (LARGE as u64, 2));
    assert_eq!((found.to_infinity, found.to_zero), (0, 1));
    let mut notes = notes.iter();
    assert!(notes.any(|note| note.ends_with("; 1 became 0")));
}

#[test]
fn rounding_that_changes_nothing_says_so() {
    let exact = Tensor::f32("one.0.weight", &[0.5; 3_000]);
    let world = World::new(vec![exact, Tensor::f32("norm.weight", &[1.001])]);
    let (found, notes) = cast(&world, world.options());
    let note = "rounding 1 tensors to BF16 changed none of their 3000 values";
    assert!(notes.contains(&note.to_owned()), "{notes:?}");
    assert_eq!(found.unwrap().changed_values, 0);
    std::fs::remove_file(world.target()).unwrap();
    // The official node rounds what it copies too.
    let official = Options {
        header: HeaderMode::Official,
        ..world.options()
    };
    let found = cast(&world, official).0.unwrap();
    assert_eq!((found.tensors, found.values), (2, 3_001));
    assert_eq!((found.changed_tensors, found.changed_values), (1, 1));
    let bf16 = World::mixed(1);
    assert!(cast(&bf16, bf16.options()).0.is_none());
}

fn too_large(at: usize, value: u16, n: usize) -> World {
    let mut all = weights::realistic(9, n);
    all[at * 2..][..2].copy_from_slice(&value.to_le_bytes());
    let (a, rest) = all.split_at(2_000);
    let (b, c) = rest.split_at(60);
    World::new(vec![
        Tensor::bf16("three.0.c.weight", c.to_vec()),
        Tensor::bf16("three.0.b.weight", b.to_vec()),
        Tensor::bf16("three.0.a.weight", a.to_vec()),
    ])
}

#[test]
fn exponents_that_df11_has_no_room_for() {
    // Inf, -NaN, and the smallest that is too large, 2^113; in the first span and in a later one.
    let cases = [
        (0, 0x7F80, 5_000, "three.0.a.weight", 0, "inf"),
        (1_029, 0xFFC1, 5_000, "three.0.b.weight", 29, "NaN"),
        (
            4_999,
            0x7800,
            5_000,
            "three.0.c.weight",
            3_969,
            "1.0384594e34",
        ),
        (
            LARGE - 1,
            0xF800,
            LARGE,
            "three.0.c.weight",
            LARGE as u64 - 1_031,
            "-1.03",
        ),
        (
            12_000_000,
            0x7F80,
            LARGE,
            "three.0.c.weight",
            11_998_970,
            "inf",
        ),
    ];
    for (at, value, n, tensor, index, words) in cases {
        let world = too_large(at, value, n);
        for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
            let error = world
                .run(Options {
                    header,
                    ..world.small()
                })
                .unwrap_err();
            assert_eq!(error.code, Code::Exponent);
            assert_eq!(error.path.as_deref(), Some(world.source().as_path()));
            assert_eq!(error.unit.as_deref(), Some("three.0"));
            assert_eq!(
                (error.tensor.as_deref(), error.index),
                (Some(tensor), Some(index))
            );
            assert!(error.message.contains(words), "{error}");
            world.assert_clean();
        }
    }
    let below = too_large(4_999, 0x77FF, 5_000);
    below.run(below.options()).unwrap();
}
