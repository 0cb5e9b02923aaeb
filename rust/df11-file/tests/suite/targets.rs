//! What may stand where the result goes.

use std::{fs, path::Path, time::SystemTime};

use crate::common::{
    checkpoint::Tensor,
    weights,
    world::{World, wait_for_half},
};
use df11_file::{Code, Error, Job, Options, Plan, Status, options::IfExists, plan};

const ALL: [IfExists; 4] = [
    IfExists::Skip,
    IfExists::Error,
    IfExists::Replace,
    IfExists::Number,
];

fn with(world: &World, if_exists: IfExists) -> Options {
    Options {
        if_exists,
        ..world.options()
    }
}

/// Content and modification time.
fn state(path: &Path) -> (Vec<u8>, SystemTime) {
    (
        fs::read(path).unwrap(),
        fs::metadata(path).unwrap().modified().unwrap(),
    )
}

#[test]
fn another_file_under_every_rule() {
    let world = World::mixed(1);
    let source = state(&world.source());
    let fresh = world.result(world.options());
    let other = b"somebody's file".to_vec();
    for if_exists in ALL {
        fs::write(world.target(), &other).unwrap();
        let outcome = world.run(with(&world, if_exists));
        let now = fs::read(world.target()).unwrap();
        match if_exists {
            IfExists::Skip | IfExists::Error => {
                let error = outcome.unwrap_err();
                assert_eq!(
                    (error.code, error.path),
                    (Code::TargetExists, Some(world.target()))
                );
                assert_eq!(now, other);
            }
            IfExists::Replace => {
                outcome.unwrap();
                assert!(now == fresh);
            }
            IfExists::Number => {
                let second = world.path("model-DF11-2.safetensors");
                assert_eq!(Path::new(&outcome.unwrap().target), second);
                assert_eq!(now, other);
                assert!(fs::read(&second).unwrap() == fresh);
                let third = world.run(with(&world, if_exists)).unwrap();
                assert_eq!(
                    Path::new(&third.target),
                    world.path("model-DF11-3.safetensors")
                );
            }
        }
        assert!(!world.partial().exists());
    }
    assert!(state(&world.source()) == source, "the source was touched");
}

#[test]
fn no_file_under_every_rule() {
    let world = World::mixed(1);
    for if_exists in ALL {
        let report = world.run(with(&world, if_exists)).unwrap();
        assert_eq!(
            (report.status, Path::new(&report.target)),
            (Status::Done, world.target().as_path())
        );
        fs::remove_file(world.target()).unwrap();
    }
}

#[test]
fn a_replaced_target_survives_until_the_new_file_is_complete() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(1, 2_000_000)),
        Tensor::bf16("one.1.weight", weights::realistic(2, 2_000_000)),
    ]);
    fs::write(world.target(), b"old").unwrap();
    let job = world.start(Options {
        max_rate: Some(4_000_000),
        ..with(&world, IfExists::Replace)
    });
    wait_for_half(&job);
    job.cancel();
    assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
    assert_eq!(fs::read(world.target()).unwrap(), b"old");
    assert!(!world.partial().exists());
}

#[test]
fn a_target_that_appears_during_the_run_is_not_overwritten() {
    let world = World::new(vec![
        Tensor::bf16("one.0.weight", weights::realistic(1, 2_000_000)),
        Tensor::bf16("one.1.weight", weights::realistic(2, 2_000_000)),
    ]);
    for if_exists in [IfExists::Skip, IfExists::Error, IfExists::Number] {
        let job = world.start(Options {
            max_rate: Some(8_000_000),
            ..with(&world, if_exists)
        });
        wait_for_half(&job);
        fs::write(world.target(), b"somebody's file").unwrap();
        let error = job.result().unwrap_err();
        assert_eq!(
            (error.code, error.path),
            (Code::TargetExists, Some(world.target()))
        );
        assert_eq!(fs::read(world.target()).unwrap(), b"somebody's file");
        fs::remove_file(world.target()).unwrap();
        world.assert_clean();
    }
}

fn plan_to(world: &World, target: &Path, if_exists: IfExists) -> Result<Plan, Error> {
    plan(&world.source(), Some(target), with(world, if_exists))
}

#[cfg(unix)]
#[test]
fn the_source_under_any_name_is_no_target() {
    let world = World::mixed(1);
    let before = state(&world.source());
    std::os::unix::fs::symlink(world.source(), world.path("symlink.safetensors")).unwrap();
    fs::hard_link(world.source(), world.path("hardlink.safetensors")).unwrap();
    fs::create_dir(world.path("folder")).unwrap();
    let names = [
        "model.safetensors",
        "folder/../model.safetensors",
        "symlink.safetensors",
        "hardlink.safetensors",
    ];
    for name in names {
        for if_exists in ALL {
            let error = plan_to(&world, &world.path(name), if_exists).expect_err(name);
            assert_eq!(error.code, Code::TargetIsSource, "{name}");
        }
    }
    // A source that is read through a link, with the file itself as the target.
    let through_link = plan(
        &world.path("symlink.safetensors"),
        Some(&world.source()),
        with(&world, IfExists::Replace),
    );
    assert_eq!(through_link.unwrap_err().code, Code::TargetIsSource);
    assert!(state(&world.source()) == before, "the source was touched");
}

#[test]
fn targets_that_are_no_files() {
    let world = World::mixed(1);
    for if_exists in [IfExists::Skip, IfExists::Error, IfExists::Replace] {
        let error = plan_to(&world, &world.path("architectures"), if_exists).expect_err("a folder");
        assert_eq!(error.code, Code::TargetExists);
        let error = plan_to(&world, &world.path("missing/file.safetensors"), if_exists)
            .expect_err("no folder");
        assert_eq!(
            (error.code, error.path),
            (Code::Write, Some(world.path("missing")))
        );
        for name in ["..", "."] {
            let error = plan_to(&world, &world.path(name), if_exists).expect_err(name);
            assert_eq!(error.code, Code::TargetExists, "{name}");
        }
        let error = plan_to(&world, Path::new(""), if_exists).expect_err("no name");
        assert_eq!(error.code, Code::Option);
    }
    assert_eq!(world.files().len(), 2);
}

#[test]
fn numbers_of_names_without_ending() {
    let world = World::mixed(1);
    fs::write(world.path("result"), b"x").unwrap();
    let numbered = plan_to(&world, &world.path("result"), IfExists::Number).unwrap();
    assert_eq!(numbered.target, world.path("result-2"));
    fs::write(world.path("v1.5.safetensors"), b"x").unwrap();
    let numbered = plan_to(&world, &world.path("v1.5.safetensors"), IfExists::Number).unwrap();
    assert_eq!(numbered.target, world.path("v1.5-2.safetensors"));
    fs::create_dir(world.path("folder")).unwrap();
    let numbered = plan_to(&world, &world.path("folder"), IfExists::Number).unwrap();
    assert_eq!(numbered.target, world.path("folder-2"));
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_overwritten() {
    let world = World::mixed(1);
    std::os::unix::fs::symlink(world.path("nowhere"), world.target()).unwrap();
    assert_eq!(world.fails(world.options()), Code::TargetExists);
    assert!(fs::symlink_metadata(world.target()).unwrap().is_symlink());
    assert!(!world.path("nowhere").exists());
    Job::start(world.plan(with(&world, IfExists::Replace)).unwrap())
        .unwrap()
        .result()
        .unwrap();
    assert!(fs::symlink_metadata(world.target()).unwrap().is_file());
}

/// Nothing but a file is ever replaced, and none is opened to find out: a pipe would wait for ever.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_left_alone() {
    let world = World::mixed(1);
    let pipe = world.path("pipe.safetensors");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let socket = world.path("socket.safetensors");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for if_exists in ALL {
        for target in [&pipe, &socket] {
            let error = plan_to(&world, target, if_exists).expect_err("a refusal");
            assert_eq!(error.code, Code::TargetExists, "{if_exists:?}");
            assert!(!fs::symlink_metadata(target).unwrap().is_file());
        }
    }
}
