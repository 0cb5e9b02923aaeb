//! Units and files that DF11 does not make smaller or cannot hold: refused, or left as they are where that was asked for.

use std::fs;

use crate::common::{checkpoint::Tensor, result::ResultFile, weights, world::World};
use df11_file::{
    Code, Error, Options, Report, Status,
    check::{self, CheckOptions},
    options::{Cast, HeaderMode, IfExists},
    restore::{self, RestoreOptions},
};
use safetensors::Dtype;

const BOTH: [HeaderMode; 2] = [HeaderMode::SelfDescribing, HeaderMode::Official];
/// More than the spans of the smallest budget hold together.
const LARGE: usize = 22_000_000;

fn keeping(world: &World, header: HeaderMode) -> Options {
    Options {
        header,
        keep_uncompressed: true,
        ..world.small()
    }
}

fn of_units(units: &[Vec<u8>]) -> World {
    let tensor = |(index, unit): (usize, &Vec<u8>)| {
        Tensor::bf16(&format!("one.{index}.weight"), unit.clone())
    };
    World::new(units.iter().enumerate().map(tensor).collect())
}

/// The loader tells the toy by these units.
fn needs(world: &World, units: &str) {
    let from = "url = \"https://example.org\"\n";
    let definition = World::definition();
    assert!(definition.contains(from));
    world.define(&definition.replacen(from, &format!("{from}needs = [{units}]\n"), 1));
}

/// Refused, and nothing is left.
fn refusal(world: &World, options: Options) -> Error {
    let error = world.run(options).expect_err("a refusal");
    assert_eq!(error.path.as_deref(), Some(world.source().as_path()));
    assert!(!error.hint.is_empty(), "{error}");
    world.assert_clean();
    error
}

fn with_infinity(mut weights: Vec<u8>, at: usize) -> Vec<u8> {
    weights[at * 2..][..2].copy_from_slice(&[0x80, 0x7F]);
    weights
}

/// The file is what verify and a second run take it for, and its source comes back where that can be.
fn assert_sound(world: &World, options: &Options) {
    let check = CheckOptions {
        against: Some(world.source()),
        definitions: options.definitions.clone(),
        architecture: "Toy".into(),
        ..CheckOptions::default()
    };
    let checked = check::start(&world.target(), check).unwrap();
    checked.result().unwrap();
    let again = world.run(options.clone()).unwrap();
    assert_eq!(again.status, Status::AlreadyDone);
    if options.header == HeaderMode::SelfDescribing {
        let back = world.path("back.safetensors");
        let options = RestoreOptions::default();
        let task = restore::start(&world.target(), Some(&back), options).unwrap();
        task.result().unwrap();
        assert!(fs::read(&back).unwrap() == fs::read(world.source()).unwrap());
        fs::remove_file(back).unwrap();
    }
}

fn left(report: &Report) -> Vec<&str> {
    let left = report.left.iter();
    left.map(|unit| unit.name.as_str()).collect()
}

#[test]
fn a_file_that_would_grow() {
    let world = of_units(&[weights::noise(1, 700_000), weights::noise(2, 300_000)]);
    for header in BOTH {
        let options = Options {
            header,
            ..world.options()
        };
        let error = refusal(&world, options);
        assert_eq!(error.code, Code::NoGain);
        assert!(error.unit.is_some(), "{error}");
        assert!(error.message.contains("have 2000000 bytes"), "{error}");
    }
    let error = refusal(&world, keeping(&world, HeaderMode::SelfDescribing));
    assert_eq!(error.code, Code::NoGain);
    assert_eq!(error.unit.as_deref(), Some("one.0"));
    assert!(error.message.contains("every unit"), "{error}");
}

#[test]
fn a_file_that_gains_although_a_unit_does_not() {
    let units = [weights::noise(1, 600_000), weights::realistic(2, 900_000)];
    let world = of_units(&units);
    for header in BOTH {
        let options = Options {
            header,
            if_exists: IfExists::Replace,
            ..world.options()
        };
        let report = world.run(options).unwrap();
        let result = ResultFile::read(&world.target());
        result.assert_unit("one.0", &units[0]);
        result.assert_unit("one.1", &units[1]);
        let note = "unit one.0: it is larger than its BF16 weights: ";
        let note = report.notes.iter().find(|found| found.starts_with(note));
        assert!(note.unwrap().contains("instead of 1200000"), "{note:?}");
        assert!(report.left.is_empty());
    }
}

#[test]
fn units_that_grow_are_left_as_they_are() {
    let units = [
        weights::realistic(1, 300_000),
        weights::noise(2, 70_001),
        weights::realistic(3, LARGE),
        weights::noise(4, 5_000),
    ];
    let world = of_units(&units);
    for header in BOTH {
        let options = keeping(&world, header);
        let report = world.run(options.clone()).unwrap();
        assert_eq!(left(&report), ["one.1", "one.3"]);
        assert_eq!(
            (report.left[0].weights, report.left[0].bytes),
            (70_001, 140_002)
        );
        let note = "unit one.1 was left uncompressed: as DF11 it would take ";
        let note = report.notes.iter().find(|found| found.starts_with(note));
        assert!(note.unwrap().ends_with("instead of 140002"), "{note:?}");
        let encoded: Vec<_> = report.units.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(encoded, ["one.0", "one.2"]);
        let result = ResultFile::read(&world.target());
        for index in [0, 2] {
            result.assert_unit(&format!("one.{index}"), &units[index]);
        }
        for index in [1, 3] {
            let (dtype, shape, bytes) = &result.tensors[&format!("one.{index}.weight")];
            assert_eq!((*dtype, shape[0]), (Dtype::BF16, units[index].len() / 2));
            assert!(*bytes == units[index]);
        }
        assert_sound(&world, &options);
        // Without the wish it is another file.
        let plain = Options {
            keep_uncompressed: false,
            ..options.clone()
        };
        assert_eq!(world.fails(plain.clone()), Code::TargetExists);
        let replaced = Options {
            if_exists: IfExists::Replace,
            ..plain
        };
        world.run(replaced).unwrap();
        assert_eq!(world.fails(options), Code::TargetExists);
        fs::remove_file(world.target()).unwrap();
    }
}

#[test]
fn progress_counts_units_that_are_left() {
    let world = of_units(&[
        weights::noise(1, 70_000),
        weights::realistic(2, 400_000),
        weights::noise(3, 1),
    ]);
    let job = world.start(keeping(&world, HeaderMode::SelfDescribing));
    job.result().unwrap();
    let end = job.snapshot();
    assert_eq!(end.units_done, 3);
    assert_eq!(end.bytes_in, end.bytes_total);
}

#[test]
fn units_that_df11_cannot_hold_are_left_as_they_are() {
    // In the first span, and in a later one: all of the unit has to be read before the next comes.
    for (n, at) in [(5_000, 0), (LARGE, LARGE - 3)] {
        let all = with_infinity(weights::realistic(1, n), at);
        let (a, rest) = all.split_at(2_000);
        let (b, c) = rest.split_at(60);
        let other = weights::realistic(2, 100_000);
        let world = World::new(vec![
            Tensor::bf16("three.0.c.weight", c.to_vec()),
            Tensor::bf16("three.0.b.weight", b.to_vec()),
            Tensor::bf16("three.0.a.weight", a.to_vec()),
            Tensor::bf16("one.0.weight", other.clone()),
        ]);
        let error = refusal(&world, world.small());
        assert_eq!(error.code, Code::Exponent);
        assert!(error.hint.contains("keep uncompressed"), "{error}");
        for header in BOTH {
            let options = keeping(&world, header);
            let report = world.run(options.clone()).unwrap();
            assert_eq!(left(&report), ["three.0"]);
            let reason = &report.left[0].reason;
            assert!(reason.contains("inf is too large"), "{reason}");
            assert!(reason.starts_with("tensor three.0."), "{reason}");
            let result = ResultFile::read(&world.target());
            result.assert_unit("one.0", &other);
            for (name, bytes) in [("a", a), ("b", b), ("c", c)] {
                assert!(result.bytes(&format!("three.0.{name}.weight")) == bytes);
            }
            assert_sound(&world, &options);
            fs::remove_file(world.target()).unwrap();
        }
    }
}

#[test]
fn units_that_the_loader_needs_are_not_left() {
    let good = weights::realistic(2, 100_000);
    let world = of_units(&[with_infinity(weights::realistic(1, 100), 3), good.clone()]);
    needs(&world, "\"one.0\"");
    let error = refusal(&world, keeping(&world, HeaderMode::SelfDescribing));
    assert_eq!(error.code, Code::Exponent);
    assert!(
        error.hint.contains("tells the model by this unit"),
        "{error}"
    );

    let grows = of_units(&[weights::noise(1, 70_000), good]);
    needs(&grows, "\"one.0\"");
    let options = keeping(&grows, HeaderMode::SelfDescribing);
    let report = grows.run(options.clone()).unwrap();
    assert!(report.left.is_empty());
    assert_sound(&grows, &options);

    let wide = World::new(vec![
        Tensor::f32("one.0.weight", &[1.0; 100]),
        Tensor::bf16("one.1.weight", weights::realistic(1, 10_000)),
    ]);
    needs(&wide, "\"one.0\"");
    let error = wide.plan(keeping(&wide, HeaderMode::SelfDescribing));
    let error = error.unwrap_err();
    assert_eq!(error.code, Code::Dtype);
    assert!(!error.hint.contains("keep uncompressed"), "{error}");
}

#[test]
fn units_of_other_dtypes_are_left_as_they_are() {
    let world = World::new(vec![
        Tensor::f32("one.0.weight", &[1.5, 1.001, -2.0]),
        Tensor::bf16("one.1.weight", weights::realistic(1, 10_000)),
    ]);
    let error = world.plan(world.options()).unwrap_err();
    assert!(error.hint.contains("keep uncompressed"), "{error}");
    for header in BOTH {
        let options = keeping(&world, header);
        let report = world.run(options.clone()).unwrap();
        let note = "unit one.0 was left uncompressed: 1 of 1 tensors are not BF16";
        let noted = report.notes.iter().any(|found| found.starts_with(note));
        assert!(noted, "{:?}", report.notes);
        let result = ResultFile::read(&world.target());
        let dtype = match header {
            HeaderMode::SelfDescribing => Dtype::F32,
            // As the official node does.
            HeaderMode::Official => Dtype::BF16,
        };
        assert_eq!(result.tensors["one.0.weight"].0, dtype);
        assert_sound(&world, &options);
        fs::remove_file(world.target()).unwrap();
    }
    let all = World::new(vec![Tensor::f32("one.0.weight", &[1.0; 100])]);
    let error = all.plan(keeping(&all, HeaderMode::SelfDescribing));
    assert_eq!(error.unwrap_err().code, Code::Dtype);
}

/// What stays F32 was not rounded, whatever the first pass made of it.
#[test]
fn rounding_of_units_that_are_left_does_not_count() {
    let mut huge = vec![1.001; 3_000];
    huge[2_999] = 1e35;
    let world = World::new(vec![
        Tensor::f32("one.0.weight", &huge),
        Tensor::f32("one.1.weight", &[1.001; 9_000]),
    ]);
    let casting = |header| Options {
        cast: Cast::ToBf16,
        ..keeping(&world, header)
    };
    let report = world.run(casting(HeaderMode::SelfDescribing)).unwrap();
    assert_eq!(left(&report), ["one.0"]);
    let result = ResultFile::read(&world.target());
    assert_eq!(result.tensors["one.0.weight"].0, Dtype::F32);
    let cast = report.cast.unwrap();
    assert_eq!(
        (cast.tensors, cast.values, cast.changed_values),
        (1, 9_000, 9_000)
    );
    fs::remove_file(world.target()).unwrap();
    // The official header rounds what it copies: once.
    let cast = world
        .run(casting(HeaderMode::Official))
        .unwrap()
        .cast
        .unwrap();
    assert_eq!((cast.tensors, cast.values), (2, 12_000));
    assert_eq!((cast.changed_tensors, cast.changed_values), (2, 12_000));
}
