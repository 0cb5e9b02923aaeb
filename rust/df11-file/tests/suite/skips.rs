//! A second run: what already is the result is left as it is, anything else is refused.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    time::{Duration, SystemTime},
};

use crate::common::{checkpoint::Tensor, result::ResultFile, weights, world::World};
use df11_file::{
    Code, Job, Options, Status,
    options::{Cast, HeaderMode, Verify},
};

fn official(world: &World) -> Options {
    Options {
        header: HeaderMode::Official,
        ..world.options()
    }
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

#[test]
fn a_second_run_changes_nothing() {
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let world = World::mixed(1);
        let options = Options {
            header,
            ..world.options()
        };
        let first = world.run(options.clone()).unwrap();
        assert_eq!(first.status, Status::Done);
        let (bytes, time) = (fs::read(world.target()).unwrap(), modified(&world.target()));
        let second = world.run(options.clone()).unwrap();
        assert_eq!(second.status, Status::AlreadyDone);
        assert_eq!(second.target_bytes, first.target_bytes);
        assert!(fs::read(world.target()).unwrap() == bytes && modified(&world.target()) == time);
        // What does not change the result does not matter.
        let other = Options {
            verify: Verify::Off,
            threads: Some(1),
            ..options
        };
        assert_eq!(world.run(other).unwrap().status, Status::AlreadyDone);
    }
}

/// A file that was written without verification is not what a run with verification gives.
#[test]
fn an_unverified_result_serves_only_where_none_was_asked_for() {
    let world = World::mixed(1);
    let unverified = Options {
        verify: Verify::Off,
        ..world.options()
    };
    world.run(unverified.clone()).unwrap();
    assert_eq!(world.fails(world.options()), Code::TargetExists);
    let again = world.run(unverified).unwrap();
    assert_eq!(again.status, Status::AlreadyDone);
    assert_eq!(again.verify, "not repeated");
}

/// A self-describing result is known by its header alone: the source's data may as well be gone.
#[test]
fn a_self_describing_result_is_known_without_reading_weights() {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    let time = modified(&world.source());
    let file = OpenOptions::new().write(true).open(world.source()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&[0xFF; 1000], length - 1000).unwrap();
    file.set_modified(time).unwrap();
    let report = world.run(world.options()).unwrap();
    assert_eq!((report.status, report.bytes_read), (Status::AlreadyDone, 0));
}

#[test]
fn a_self_describing_result_of_something_else_is_refused() {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    let refused = |world: &World, options: Options| {
        let before = fs::read(world.target()).unwrap();
        assert_eq!(world.fails(options), Code::TargetExists);
        assert!(fs::read(world.target()).unwrap() == before);
    };
    refused(&world, official(&world));
    refused(
        &world,
        Options {
            cast: Cast::ToBf16,
            ..world.options()
        },
    );

    // Another architecture, under the same names.
    world.define(&World::definition().replace("id = \"Toy\"", "id = \"Train\""));
    refused(&world, world.options());
    // The same architecture with other units.
    world.define(&World::definition().replace(r"one\.\d+", r"one\.2"));
    refused(&world, world.options());
    // The same units, concatenated in another order.
    world.define(&World::definition().replace(r#"["a", "b", "c"]"#, r#"["b", "a", "c"]"#));
    refused(&world, world.options());
    world.define(World::definition());
    assert_eq!(
        world.run(world.options()).unwrap().status,
        Status::AlreadyDone
    );

    // A touched source, and one of another size.
    let time = modified(&world.source());
    let source = OpenOptions::new().write(true).open(world.source()).unwrap();
    source
        .set_modified(time + Duration::from_nanos(100))
        .unwrap();
    refused(&world, world.options());
    source.set_modified(time).unwrap();
    assert_eq!(
        world.run(world.options()).unwrap().status,
        Status::AlreadyDone
    );
    let larger = World::new(vec![Tensor::bf16(
        "one.0.weight",
        weights::realistic(1, 100),
    )]);
    fs::copy(larger.source(), world.source()).unwrap();
    source.set_modified(time).unwrap();
    refused(&world, world.options());
}

/// A plan holds the source's state. Where that is no longer true, the result of that state is not the result of the source.
#[test]
fn a_source_that_changed_after_the_plan() {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    let plan = world.plan(world.options()).unwrap();
    let source = OpenOptions::new().write(true).open(world.source()).unwrap();
    source
        .set_modified(SystemTime::now() + Duration::from_secs(1))
        .unwrap();
    let error = Job::start(plan).unwrap().result().unwrap_err();
    assert_eq!(error.code, Code::SourceChanged);
}

#[test]
fn a_damaged_self_describing_result_is_refused() {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    let length = fs::metadata(world.target()).unwrap().len();
    OpenOptions::new()
        .write(true)
        .open(world.target())
        .unwrap()
        .set_len(length - 1)
        .unwrap();
    assert_eq!(world.fails(world.options()), Code::TargetExists);
}

#[test]
fn an_official_result_with_one_wrong_byte_is_refused() {
    let world = World::mixed(1);
    world.run(official(&world)).unwrap();
    let result = ResultFile::read(&world.target());
    let chunks = result.bytes("three.7.gaps").len() as u64 / 320;
    let at = |name: &str, offset: u64| result.offsets[name] + offset;
    let places = [
        // The root table's entry for the most frequent exponents.
        ("luts", at("three.7.luts", 0)),
        (
            "code lengths",
            at(
                "three.7.luts",
                result.bytes("three.7.luts").len() as u64 - 256 + 122,
            ),
        ),
        ("first bits", at("three.7.encoded_exponent", 100)),
        (
            "last bits",
            at("three.7.encoded_exponent", (chunks - 1) * 4096 + 1),
        ),
        ("first gaps", at("three.7.gaps", 200)),
        ("last gaps", at("three.7.gaps", (chunks - 1) * 320 + 1)),
        ("first position", at("three.7.output_positions", 0)),
        ("sign and mantissa", at("three.7.sign_mantissa", 0)),
        (
            "number of weights",
            at("three.7.output_positions", chunks * 4),
        ),
        ("split positions", at("three.7.split_positions", 8)),
        ("a unit of one chunk", at("one.2.sign_mantissa", 4)),
        ("passthrough", at("three.7.a.bias", 65)),
        ("converted passthrough", at("norm.weight", 0)),
    ];
    for (what, offset) in places {
        flip(&world.target(), offset);
        assert_eq!(world.fails(official(&world)), Code::TargetExists, "{what}");
        flip(&world.target(), offset);
    }
    assert_eq!(
        world.run(official(&world)).unwrap().status,
        Status::AlreadyDone
    );
}

/// Position tables that send the check through the whole unit, or to nowhere.
#[test]
fn an_official_result_with_absurd_positions_is_refused() {
    let world = World::of_unit(weights::realistic(1, 300_000));
    world.run(official(&world)).unwrap();
    let result = ResultFile::read(&world.target());
    let place = result.offsets["one.0.output_positions"];
    let file = OpenOptions::new().write(true).open(world.target()).unwrap();
    for absurd in [300_000_u32, u32::MAX, 100_000] {
        file.write_all_at(&absurd.to_le_bytes(), place + 4).unwrap();
        assert_eq!(world.fails(official(&world)), Code::TargetExists);
    }
}

type Change<'a> = &'a dyn Fn(&mut Vec<Tensor>);

#[test]
fn an_official_result_of_another_layout_is_refused() {
    use crate::common::checkpoint::{Layout, write};
    let world = World::of_unit(weights::realistic(1, 1000));
    world.run(official(&world)).unwrap();
    let result = ResultFile::read(&world.target());
    let sound: Vec<_> = result
        .order
        .iter()
        .map(|name| {
            let (dtype, shape, bytes) = &result.tensors[name];
            let dtype = match *dtype {
                safetensors::Dtype::U8 => "U8",
                safetensors::Dtype::I64 => "I64",
                _ => "BF16",
            };
            let shape: Vec<_> = shape.iter().map(|&side| side as u64).collect();
            Tensor::new(name, dtype, &shape, bytes.clone())
        })
        .collect();
    let with = |change: Change| {
        let mut tensors = sound.clone();
        change(&mut tensors);
        write(&world.target(), &tensors, &Layout::default());
        world.run(official(&world)).map(|report| report.status)
    };
    let resize = |tensors: &mut Vec<Tensor>, field: &str, length: usize| {
        let tensor = tensors
            .iter_mut()
            .find(|tensor| tensor.name.ends_with(field))
            .unwrap();
        tensor.bytes.resize(length, 0);
        tensor.shape = vec![length as u64];
    };
    assert_eq!(with(&|_| ()).unwrap(), Status::AlreadyDone);
    let changes: [Change; 6] = [
        &|tensors| tensors.truncate(tensors.len() - 1),
        &|tensors| tensors.push(Tensor::new("more", "U8", &[1], vec![0])),
        &|tensors| resize(tensors, ".gaps", 321),
        &|tensors| resize(tensors, ".sign_mantissa", 999),
        &|tensors| {
            resize(tensors, ".encoded_exponent", 0);
            resize(tensors, ".gaps", 0);
            resize(tensors, ".output_positions", 4);
        },
        &|tensors| {
            let luts = tensors
                .iter_mut()
                .find(|tensor| tensor.name.ends_with("luts"))
                .unwrap();
            luts.bytes.clear();
            luts.shape[0] = 0;
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert_eq!(
            with(change).unwrap_err().code,
            Code::TargetExists,
            "change {index}"
        );
    }
}
