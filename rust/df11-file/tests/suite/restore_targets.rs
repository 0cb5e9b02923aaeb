//! Where a restored file goes, what may stand there, and what a stop leaves.

use std::{fs, path::Path};

use crate::common::{
    checkpoint::Tensor, forged::Forged, mount::Mount, skip, weights, world::World,
};
use df11_file::{
    Code, Error, Status, Task,
    options::IfExists,
    restore::{self, RestoreOptions, RestoreReport},
};

const ALL: [IfExists; 4] = [
    IfExists::Skip,
    IfExists::Error,
    IfExists::Replace,
    IfExists::Number,
];
const MARKER: &[u8] = b"DF11-PARTIAL/1\r\n";

/// A compressed world whose source is known and away.
fn world() -> (World, Vec<u8>) {
    let world = World::mixed(1);
    world.run(world.options()).unwrap();
    let source = fs::read(world.source()).unwrap();
    fs::remove_file(world.source()).unwrap();
    (world, source)
}

fn start(
    world: &World,
    target: Option<&Path>,
    if_exists: IfExists,
) -> Result<Task<RestoreReport>, Error> {
    let options = RestoreOptions {
        if_exists,
        ..RestoreOptions::default()
    };
    restore::start(&world.target(), target, options)
}

fn run(world: &World, target: Option<&Path>, if_exists: IfExists) -> Result<RestoreReport, Error> {
    start(world, target, if_exists)?.result()
}

#[test]
fn the_default_is_the_source_s_name() {
    let (world, source) = world();
    let report = run(&world, None, IfExists::Skip).unwrap();
    assert_eq!(Path::new(&report.target), world.source());
    assert!(fs::read(world.source()).unwrap() == source);
    let modified = || fs::metadata(world.source()).unwrap().modified().unwrap();
    let before = modified();
    let again = run(&world, None, IfExists::Skip).unwrap();
    assert_eq!(again.status, Status::AlreadyDone);
    assert!(modified() == before, "the file was written again");
}

/// One bit of data, of a kept tensor or of the header makes another file of it.
#[test]
fn what_is_not_quite_the_source_is_not_skipped() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(1, 2_000)),
        Tensor::new("junk.state", "U8", &[3], vec![7, 8, 9]),
    ]);
    world.run(world.options()).unwrap();
    let source = fs::read(world.source()).unwrap();
    let header = u64::from_le_bytes(*source.first_chunk().unwrap()) as usize;
    let junk = 8 + header + 4_000;
    assert_eq!(source[junk..junk + 3], [7, 8, 9]);
    let same = run(&world, None, IfExists::Skip).unwrap();
    assert_eq!(same.status, Status::AlreadyDone);
    for at in [source.len() - 1, 8 + header, junk] {
        let mut other = source.clone();
        other[at] ^= 1;
        fs::write(world.source(), &other).unwrap();
        let error = run(&world, None, IfExists::Skip).unwrap_err();
        assert_eq!(error.code, Code::TargetExists, "{at}");
        assert!(fs::read(world.source()).unwrap() == other);
    }
    let text = String::from_utf8(source[8..8 + header].to_vec()).unwrap();
    let text = text.replace("junk.state", "junk.stale");
    let other = [&source[..8], text.as_bytes(), &source[8 + header..]].concat();
    fs::write(world.source(), &other).unwrap();
    let error = run(&world, None, IfExists::Skip).unwrap_err();
    assert_eq!(error.code, Code::TargetExists);
    assert!(!world.path("model.safetensors.partial").exists());
}

#[test]
fn another_file_under_every_rule() {
    let (world, source) = world();
    for if_exists in ALL {
        fs::write(world.source(), b"somebody's").unwrap();
        let outcome = run(&world, None, if_exists);
        let now = fs::read(world.source()).unwrap();
        match if_exists {
            IfExists::Skip | IfExists::Error => {
                let error = outcome.unwrap_err();
                assert_eq!(
                    (error.code, error.path),
                    (Code::TargetExists, Some(world.source()))
                );
                assert_eq!(now, b"somebody's");
            }
            IfExists::Replace => {
                outcome.unwrap();
                assert!(now == source);
            }
            IfExists::Number => {
                let second = world.path("model-2.safetensors");
                assert_eq!(Path::new(&outcome.unwrap().target), second);
                assert_eq!(now, b"somebody's");
                assert!(fs::read(second).unwrap() == source);
            }
        }
        assert!(!world.path("model.safetensors.partial").exists());
    }
}

#[test]
fn the_file_itself_is_no_target() {
    let (world, source) = world();
    let before = fs::read(world.target()).unwrap();
    for if_exists in ALL {
        let error = run(&world, Some(&world.target()), if_exists).unwrap_err();
        assert_eq!(error.code, Code::TargetIsSource);
    }
    assert!(fs::read(world.target()).unwrap() == before);
    // Under the name of its source it needs another one.
    fs::rename(world.target(), world.source()).unwrap();
    let task = restore::start(&world.source(), None, RestoreOptions::default()).unwrap();
    let target = task.result().unwrap().target;
    assert_eq!(Path::new(&target), world.path("model-restored.safetensors"));
    assert!(fs::read(target).unwrap() == source);
}

#[test]
fn targets_that_are_no_files() {
    let (world, _) = world();
    for (name, code) in [
        ("architectures", Code::TargetExists),
        ("..", Code::TargetExists),
        ("missing/back.safetensors", Code::Write),
    ] {
        let error = run(&world, Some(&world.path(name)), IfExists::Replace).unwrap_err();
        assert_eq!(error.code, code, "{name}");
    }
}

/// The name comes from a file: it stays in the folder, and is a checkpoint's.
#[test]
fn names_that_lead_elsewhere() {
    for (told, expected) in [
        ("../../other.safetensors", "other.safetensors"),
        ("/etc/other.safetensors", "other.safetensors"),
        ("C:\\x\\other.safetensors", "other.safetensors"),
        ("..", "model-restored.safetensors"),
        ("x/..", "model-restored.safetensors"),
        ("", "model-restored.safetensors"),
        ("a\nb.safetensors", "model-restored.safetensors"),
        ("NUL.safetensors", "model-restored.safetensors"),
        ("__init__.py", "model-restored.safetensors"),
    ] {
        let (world, source) = world();
        let mut forged = Forged::read(&world.target());
        forged.set("source_name", told);
        forged.write(&world.target());
        let report = run(&world, None, IfExists::Skip).unwrap();
        assert_eq!(Path::new(&report.target), world.path(expected), "{told:?}");
        assert!(fs::read(world.path(expected)).unwrap() == source);
    }
}

#[test]
fn partial_files() {
    let (world, source) = world();
    let partial = world.path("model.safetensors.partial");
    fs::write(&partial, b"somebody's file, and long").unwrap();
    let error = run(&world, None, IfExists::Skip).unwrap_err();
    assert_eq!(
        (error.code, error.path),
        (Code::PartialForeign, Some(partial.clone()))
    );
    assert_eq!(fs::read(&partial).unwrap(), b"somebody's file, and long");
    fs::write(&partial, [MARKER, &vec![0xAB; 3_000_000]].concat()).unwrap();
    let report = run(&world, None, IfExists::Skip).unwrap();
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(
        fs::read(world.source()).unwrap() == source,
        "bytes of the old partial file are left"
    );
    assert!(!partial.exists());
}

#[test]
fn a_stop_leaves_nothing() {
    let world = World::new(vec![
        Tensor::new("large", "U8", &[4_000_000], vec![3; 4_000_000]),
        Tensor::bf16("one.0.weight", weights::realistic(1, 12_000_000)),
    ]);
    world.run(world.options()).unwrap();
    fs::remove_file(world.source()).unwrap();
    // At once, while tensors are copied, and while the unit is decoded.
    for done in [0, 1, 5_000_000] {
        fs::write(world.source(), b"old").unwrap();
        let task = start(&world, None, IfExists::Replace).unwrap();
        while task.snapshot().bytes_in < done {
            assert!(!task.join(Some(std::time::Duration::ZERO)), "it ended");
        }
        task.cancel();
        let error = task.result().unwrap_err();
        assert_eq!(error.code, Code::Cancelled, "{error}");
        let end = task.snapshot();
        assert!(end.bytes_in < end.bytes_total, "it did all its work first");
        assert_eq!(fs::read(world.source()).unwrap(), b"old");
        assert_eq!(
            world.files(),
            [
                "architectures",
                "model-DF11.safetensors",
                "model.safetensors"
            ]
        );
    }
}

#[test]
fn a_disk_without_room() {
    let (world, _) = world();
    fs::create_dir(world.path("disk")).unwrap();
    let _mount = match Mount::new(&world.path("disk"), 500_000) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("no file system can be mounted: {reason}")),
    };
    let target = world.path("disk/back.safetensors");
    let error = run(&world, Some(&target), IfExists::Skip).unwrap_err();
    assert_eq!((error.code, error.path), (Code::NoSpace, Some(target)));
    // Seen before the first write, not by its failure.
    assert!(error.message.contains("needs about"), "{}", error.message);
    assert_eq!(fs::read_dir(world.path("disk")).unwrap().count(), 0);
}
