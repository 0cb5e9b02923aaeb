//! Files that do not describe themselves: a usable checkpoint, its shapes found again.

use std::{fs, path::Path};

use crate::common::{
    checkpoint::{Layout, Tensor, write},
    forged::Forged,
    result::ResultFile,
    shaped, weights,
    world::World,
};
use df11_file::{
    Code, Error, Options, Status,
    options::{Cast, HeaderMode, IfExists},
    restore::{self, RestoreOptions, RestoreReport},
};

const RESTORED: &str = "model-restored.safetensors";

fn run(world: &World, options: RestoreOptions) -> Result<RestoreReport, Error> {
    restore::start(&world.target(), None, options)?.result()
}

/// Every tensor of the world's source that belongs to the model is there with its name in the model, shape and bytes, and nothing else.
fn assert_is_the_model(path: &Path, tensors: &[Tensor]) -> ResultFile {
    let found = ResultFile::read(path);
    let mut count = 0;
    for tensor in tensors
        .iter()
        .filter(|tensor| !tensor.name.starts_with("junk."))
    {
        let name = tensor.name.replace(".scale", ".weight");
        let (dtype, shape, bytes) = &found.tensors[&name];
        assert_eq!(dtype.to_string(), tensor.dtype, "{name}");
        let shape: Vec<_> = shape.iter().map(|&side| side as u64).collect();
        assert_eq!(shape, tensor.shape, "{name}");
        assert!(*bytes == tensor.bytes, "{name}");
        count += 1;
    }
    // And the marker.
    assert_eq!(found.tensors.len(), count + 1);
    found
}

#[test]
fn a_usable_checkpoint() {
    let world = shaped::compressed(shaped::tensors());
    for threads in [1, 5] {
        let options = RestoreOptions {
            threads: Some(threads),
            ..shaped::restoring(&world)
        };
        let report = run(&world, options).unwrap();
        assert_eq!((report.status, report.exact), (Status::Done, false));
        assert_eq!(report.architecture.as_deref(), Some("Toy"));
        assert!(
            report.notes[0].contains("dropped tensors"),
            "{:?}",
            report.notes
        );
        let restored = world.path(RESTORED);
        assert_eq!(Path::new(&report.target), restored);
        assert_eq!(report.target_bytes, fs::metadata(&restored).unwrap().len());
        let found = assert_is_the_model(&restored, &shaped::tensors());
        assert_eq!(report.tensors, found.tensors.len() as u64);
        assert_eq!(found.metadata.len(), 1);
        assert_eq!(found.metadata["format"], "pt");
        fs::remove_file(restored).unwrap();
    }
    shaped::assert_untouched(&world);
}

/// Every tensor begins at a multiple of its elements' size.
#[test]
fn tensors_are_aligned() {
    let mut tensors = shaped::tensors();
    tensors.insert(0, Tensor::new("odd", "U8", &[3], vec![1, 2, 3]));
    tensors.push(Tensor::new("wide", "I64", &[1], vec![9; 8]));
    let world = shaped::compressed(tensors.clone());
    run(&world, shaped::restoring(&world)).unwrap();
    let found = assert_is_the_model(&world.path(RESTORED), &tensors);
    for (name, offset) in &found.offsets {
        assert_eq!(
            offset % (found.tensors[name].0.bitsize() as u64 / 8),
            0,
            "{name}"
        );
    }
}

#[test]
fn a_plan_writes_nothing() {
    let world = shaped::compressed(shaped::tensors());
    let plan = restore::plan(&world.target(), None, shaped::restoring(&world)).unwrap();
    shaped::assert_untouched(&world);
    let shape = |name: &str| {
        let mut tensors = plan.tensors.iter();
        tensors
            .find(|tensor| tensor.name == name)
            .unwrap()
            .shape
            .clone()
    };
    assert_eq!(shape("three.1.a.weight"), [60, 1_000]);
    assert_eq!(shape("one.0.weight"), [25, 40]);
    let report = run(&world, shaped::restoring(&world)).unwrap();
    assert_eq!(
        (plan.exact, plan.target_bytes),
        (false, report.target_bytes)
    );
    assert_eq!(plan.target, report.target);
}

/// Skipped is what holds exactly what would be written, found by decoding.
#[test]
fn what_is_there_already() {
    let world = shaped::compressed(shaped::tensors());
    run(&world, shaped::restoring(&world)).unwrap();
    let restored = world.path(RESTORED);
    let sound = fs::read(&restored).unwrap();
    let modified = || fs::metadata(&restored).unwrap().modified().unwrap();
    let before = modified();
    let again = run(&world, shaped::restoring(&world)).unwrap();
    assert_eq!((again.status, again.exact), (Status::AlreadyDone, false));
    assert!(modified() == before, "the file was written again");

    let header = 8 + u64::from_le_bytes(*sound.first_chunk().unwrap()) as usize;
    let offsets = ResultFile::parse(&sound).offsets;
    let weight = offsets["three.1.b.weight"] as usize + 77;
    // The last byte of the header is a space or the brace.
    for at in [header, weight, sound.len() - 1, 30] {
        let mut other = sound.clone();
        other[at] ^= 1;
        fs::write(&restored, &other).unwrap();
        let error = run(&world, shaped::restoring(&world)).unwrap_err();
        assert_eq!(error.code, Code::TargetExists, "{at}: {error}");
        assert_eq!(error.path.as_ref(), Some(&restored), "{at}");
        assert!(fs::read(&restored).unwrap() == other, "{at}");
    }
    assert!(!world.path("model-restored.safetensors.partial").exists());
    for (if_exists, name) in [
        (IfExists::Replace, RESTORED),
        (IfExists::Number, "model-restored-2.safetensors"),
    ] {
        fs::write(&restored, b"somebody's").unwrap();
        let options = RestoreOptions {
            if_exists,
            ..shaped::restoring(&world)
        };
        let report = run(&world, options).unwrap();
        assert_eq!(Path::new(&report.target), world.path(name));
        assert!(fs::read(world.path(name)).unwrap() == sound);
    }
}

/// Sources of other dtypes come back as the file has them: rounded.
#[test]
fn rounded_tensors_stay_rounded() {
    let mut tensors = shaped::tensors();
    tensors.push(Tensor::f32("more", &[1.5, -2.0]));
    let world = shaped::compressed(tensors.clone());
    run(&world, shaped::restoring(&world)).unwrap();
    *tensors.last_mut().unwrap() = Tensor::bf16("more", vec![0xC0, 0x3F, 0, 0xC0]);
    assert_is_the_model(&world.path(RESTORED), &tensors);
}

/// Metadata of other tools stays, and what it says of the format.
#[test]
fn foreign_metadata_stays() {
    let world = shaped::compressed(shaped::tensors());
    let mut file = Forged::read(&world.target());
    file.header["__metadata__"] = serde_json::json!({"title": "Zeit \"µ\"\n", "format": "np"});
    file.write(&world.target());
    run(&world, shaped::restoring(&world)).unwrap();
    let found = ResultFile::read(&world.path(RESTORED)).metadata;
    assert_eq!((found.len(), found["format"].as_str()), (2, "np"));
    assert_eq!(found["title"], "Zeit \"µ\"\n");
}

/// A self-describing file that cannot be its source again can still be used, without its architecture.
#[test]
fn a_usable_checkpoint_of_a_self_describing_file() {
    let mut tensors = shaped::tensors();
    tensors.push(Tensor::new("junk.large", "U8", &[70_000], vec![1; 70_000]));
    tensors.push(Tensor::f32("one.7.weight", &[1.0, 2.5]));
    // No shape rule could know this one.
    tensors.push(Tensor::new(
        "one.9.weight",
        "BF16",
        &[2, 3, 4],
        weights::realistic(4, 24),
    ));
    let metadata = vec![("title".to_owned(), "a".to_owned())];
    let world = World::new(Vec::new());
    let layout = Layout {
        metadata,
        ..Layout::default()
    };
    let marker = Tensor::bf16("toy.marker", vec![0x80, 0x3F]);
    let all: Vec<_> = tensors.iter().cloned().chain([marker]).collect();
    write(&world.source(), &all, &layout);
    let cast = Options {
        cast: Cast::ToBf16,
        ..world.options()
    };
    world.run(cast).unwrap();
    fs::remove_file(world.source()).unwrap();

    let error = run(&world, RestoreOptions::default()).unwrap_err();
    assert_eq!(error.code, Code::NotRestorable);
    assert!(error.hint.contains("'usable'"), "{error}");
    let usable = RestoreOptions {
        usable: true,
        ..RestoreOptions::default()
    };
    let report = run(&world, usable.clone()).unwrap();
    assert_eq!((report.status, report.exact), (Status::Done, false));
    assert!(
        report.notes[0].contains("2 tensors with 70003 bytes"),
        "{:?}",
        report.notes
    );
    let restored = world.path(RESTORED);
    assert_eq!(Path::new(&report.target), restored, "not the source's name");
    let rounded = tensors.iter_mut().find(|tensor| tensor.dtype == "F32");
    *rounded.unwrap() = Tensor::bf16("one.7.weight", vec![0x80, 0x3F, 0x20, 0x40]);
    let found = assert_is_the_model(&restored, &tensors);
    assert_eq!(
        (found.metadata.len(), found.metadata["title"].as_str()),
        (2, "a")
    );
    assert_eq!(run(&world, usable).unwrap().status, Status::AlreadyDone);
}

/// A file that could be its source again is made usable where that is asked for.
#[test]
fn usable_is_a_choice() {
    let world = World::new(shaped::tensors());
    world.run(world.options()).unwrap();
    let usable = RestoreOptions {
        usable: true,
        ..RestoreOptions::default()
    };
    run(&world, usable).unwrap();
    assert_is_the_model(&world.path(RESTORED), &shaped::tensors());
    let target = world.path("exact.safetensors");
    let exact = restore::start(&world.target(), Some(&target), RestoreOptions::default());
    assert!(exact.unwrap().result().unwrap().exact);
    assert!(fs::read(target).unwrap() == fs::read(world.source()).unwrap());
}

#[test]
fn a_stop_leaves_nothing() {
    let mut tensors = shaped::tensors();
    let n = 40_000 * 500;
    tensors.push(Tensor::new(
        "one.3.weight",
        "BF16",
        &[500, 40_000],
        weights::constant(5, n),
    ));
    tensors.push(Tensor::bf16("one.3.norm", weights::realistic(6, 20_000)));
    let world = shaped::compressed(tensors);
    let task = restore::start(&world.target(), None, shaped::restoring(&world)).unwrap();
    while task.snapshot().bytes_in == 0 {
        std::thread::yield_now();
    }
    task.cancel();
    assert_eq!(task.result().unwrap_err().code, Code::Cancelled);
    shaped::assert_untouched(&world);
}

/// The official header of one's own file, its units with members of any order and number.
#[test]
fn every_kind_of_unit() {
    let mut tensors = shaped::tensors();
    for (number, weights) in [
        weights::constant(1, 400_000),
        weights::near_constant(2, 400_000, 50_000),
        weights::many_tables(3, 200_000),
        weights::noise(4, 200_000),
        weights::realistic(5, 40),
    ]
    .into_iter()
    .enumerate()
    {
        let rows = weights.len() as u64 / 80;
        tensors.push(Tensor::new(
            &format!("one.1{number}.weight"),
            "BF16",
            &[rows, 40],
            weights,
        ));
        tensors.push(Tensor::bf16(
            &format!("one.1{number}.norm"),
            weights::realistic(9, 20),
        ));
    }
    let world = shaped::compressed(tensors.clone());
    run(&world, shaped::restoring(&world)).unwrap();
    assert_is_the_model(&world.path(RESTORED), &tensors);
}

/// Not of codes, signs and mantissas: only hashes could tell.
#[test]
fn a_flipped_bit_leaves_no_file() {
    let world = shaped::compressed(shaped::tensors());
    let intact = fs::read(world.target()).unwrap();
    let file = ResultFile::parse(&intact);
    let fields = ["gaps", "output_positions"];
    let redundant = |name: &&String| fields.contains(&name.rsplit('.').next().unwrap_or_default());
    for name in file.order.iter().filter(redundant) {
        if file.bytes(name).is_empty() {
            continue;
        }
        let mut damaged = intact.clone();
        damaged[file.offsets[name] as usize] ^= 0x80;
        fs::write(world.target(), damaged).unwrap();
        let error = run(&world, shaped::restoring(&world)).expect_err(name);
        let expected = [Code::Verify, Code::Structure];
        assert!(expected.contains(&error.code), "{name}: {error}");
        assert_eq!(error.path, Some(world.target()), "{name}");
        shaped::assert_untouched(&world);
    }
    // Also where the right result is there already.
    fs::write(world.target(), &intact).unwrap();
    run(&world, shaped::restoring(&world)).unwrap();
    let mut damaged = intact;
    damaged[file.offsets["three.1.gaps"] as usize] ^= 0x80;
    fs::write(world.target(), damaged).unwrap();
    let error = run(&world, shaped::restoring(&world)).unwrap_err();
    assert_eq!(error.code, Code::Verify);
}

/// What the official tool cannot have written: a header that describes itself is not needed.
#[test]
fn both_headers_give_the_same_tensors() {
    let world = shaped::compressed(shaped::tensors());
    run(&world, shaped::restoring(&world)).unwrap();
    let by_rules = fs::read(world.path(RESTORED)).unwrap();
    fs::remove_file(world.path(RESTORED)).unwrap();
    let described = World::new(shaped::tensors());
    let header = HeaderMode::SelfDescribing;
    described
        .run(Options {
            header,
            ..described.options()
        })
        .unwrap();
    let usable = RestoreOptions {
        usable: true,
        ..RestoreOptions::default()
    };
    run(&described, usable).unwrap();
    assert!(fs::read(described.path(RESTORED)).unwrap() == by_rules);
}
