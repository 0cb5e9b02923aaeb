//! Folders as targets: complete or not there, never another's, and nothing left by a run that fails.

use std::fs;

use df11_file::{
    Code, Job, Options, Status,
    options::{HeaderMode, IfExists},
};

use crate::{
    common::{
        assert_one_succeeds,
        checkpoint::Tensor,
        folder::{ModelFolder, contents},
        weights,
        world::wait_for,
    },
    folders::model,
};

fn with(folder: &ModelFolder, if_exists: IfExists) -> Options {
    Options {
        if_exists,
        ..folder.world.options()
    }
}

fn assert_clean(folder: &ModelFolder) {
    assert_eq!(folder.world.files(), ["architectures", "model"]);
}

#[test]
fn a_run_that_fails_or_is_stopped_leaves_nothing() {
    let folder = ModelFolder::in_layout(
        vec![vec![
            Tensor::bf16("one.0.weight", weights::realistic(1, 4_000_000)),
            Tensor::bf16("one.1.weight", vec![0x80, 0x7F]),
        ]],
        "transformers",
    );
    assert_eq!(
        folder.run(folder.world.options()).unwrap_err().code,
        Code::Exponent
    );
    assert_clean(&folder);
    let slow = Options {
        max_rate: Some(2_000_000),
        ..folder.world.options()
    };
    let job = Job::start(folder.plan(slow).unwrap()).unwrap();
    while !folder
        .world
        .path("model-DF11.partial/one_0.safetensors")
        .exists()
    {
        assert!(
            !job.join(Some(std::time::Duration::from_millis(1))),
            "it ended"
        );
    }
    assert!(!folder.target().exists());
    job.cancel();
    assert_eq!(job.result().unwrap_err().code, Code::Cancelled);
    assert_clean(&folder);
}

#[test]
fn the_same_result_is_skipped_and_any_other_refused() {
    for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
        let folder = model("transformers");
        fs::write(folder.file("tokenizer.json"), "{}").unwrap();
        let options = Options {
            header,
            ..folder.world.options()
        };
        let run = || folder.run(options.clone()).map(|report| report.status);
        assert_eq!(run().unwrap(), Status::Done);
        let before = contents(&folder.target());
        assert_eq!(run().unwrap(), Status::AlreadyDone);
        let other = Options {
            config_version: "0.2.0".parse().unwrap(),
            ..options.clone()
        };
        assert_eq!(folder.run(other).unwrap_err().code, Code::TargetExists);
        for name in ["config.json", "tokenizer.json", "one_0.safetensors"] {
            let path = folder.target().join(name);
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            assert_eq!(run().unwrap_err().code, Code::TargetExists, "{name}");
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(run().unwrap(), Status::AlreadyDone);
        assert!(contents(&folder.target()) == before, "it was touched");
        let refused = folder.run(with(&folder, IfExists::Error));
        assert_eq!(refused.unwrap_err().code, Code::TargetExists);
        let numbered = folder.run(with(&folder, IfExists::Number)).unwrap();
        assert!(numbered.target.ends_with("model-DF11-2"));
    }
}

/// The source's index and configuration are restored from the result: it must hold those of today.
#[test]
fn a_result_with_other_texts_of_its_source_is_another() {
    for layout in ["transformers", "diffusers"] {
        let folder = model(layout);
        let run = || {
            folder
                .run(folder.world.options())
                .map(|report| report.status)
        };
        run().unwrap();
        for file in [folder.index_path(), folder.file("config.json")] {
            let before = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("{before} ")).unwrap();
            assert_eq!(run().unwrap_err().code, Code::TargetExists, "{layout}");
            fs::write(&file, before).unwrap();
            assert_eq!(run().unwrap(), Status::AlreadyDone);
        }
    }
}

#[test]
fn only_a_df11_folder_is_replaced_and_what_is_not_ours_is_kept() {
    let folder = model("transformers");
    let replace = || folder.run(with(&folder, IfExists::Replace));
    fs::create_dir(folder.target()).unwrap();
    replace().unwrap();
    replace().unwrap();
    assert_eq!(
        folder.world.files(),
        ["architectures", "model", "model-DF11"]
    );
    fs::write(folder.target().join("notes.txt"), "mine").unwrap();
    let report = replace().unwrap();
    let kept = folder.world.path("model-DF11.replaced-1");
    assert_eq!(
        contents(&kept).into_keys().collect::<Vec<_>>(),
        ["notes.txt"]
    );
    assert!(report.notes.iter().any(|note| note.contains("replaced-1")));
    fs::remove_dir_all(&kept).unwrap();
    // Whatever else stands there is nobody's to replace.
    fs::remove_dir_all(folder.target()).unwrap();
    fs::create_dir(folder.target()).unwrap();
    fs::write(folder.target().join("config.json"), "{}").unwrap();
    assert_eq!(replace().unwrap_err().code, Code::TargetExists);
    fs::remove_dir_all(folder.target()).unwrap();
    fs::write(folder.target(), "a file").unwrap();
    assert_eq!(replace().unwrap_err().code, Code::TargetExists);
    assert_eq!(fs::read(folder.target()).unwrap(), b"a file");
}

/// What a link leads to is not ours to empty, be it the target or a file of the source.
#[cfg(unix)]
#[test]
fn links_are_not_followed_when_a_folder_is_replaced() {
    use std::os::unix::fs::symlink;
    let folder = model("transformers");
    let options = with(&folder, IfExists::Replace);
    folder.run(options.clone()).unwrap();
    let moved = folder.world.path("moved");
    fs::rename(folder.target(), &moved).unwrap();
    symlink(&moved, folder.target()).unwrap();
    let before = contents(&moved);
    folder.run(options.clone()).unwrap();
    assert!(contents(&moved) == before, "it was emptied");
    assert!(!folder.target().is_symlink());
    assert!(contents(&folder.target()) == before);
    assert_eq!(folder.world.files().len(), 4);
    // A file of the source lies in the target.
    let shard = folder.file(folder.shard(0));
    let inside = folder.target().join("shard.safetensors");
    fs::rename(&shard, &inside).unwrap();
    symlink(&inside, &shard).unwrap();
    let error = folder.run(options).unwrap_err();
    assert_eq!(
        (error.code, error.path),
        (Code::TargetIsSource, Some(shard))
    );
    assert!(inside.exists());
}

#[test]
fn the_source_is_never_a_target() {
    let folder = model("transformers");
    for target in [
        folder.path(),
        folder.file("inside"),
        folder.world.folder().to_path_buf(),
    ] {
        let outcome = df11_file::plan(&folder.path(), Some(&target), folder.world.options());
        assert_eq!(
            outcome.unwrap_err().code,
            Code::TargetIsSource,
            "{}",
            target.display()
        );
    }
}

#[test]
fn a_folder_left_by_an_interrupted_run_is_replaced_and_a_foreign_one_is_not() {
    let folder = model("transformers");
    let partial = folder.world.path("model-DF11.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join(".df11.partial"), "DF11-PARTIAL/1\r\n").unwrap();
    fs::write(partial.join("one_0.safetensors"), "half").unwrap();
    let report = folder.run(folder.world.options()).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("partial")));
    assert_eq!(
        folder.world.files(),
        ["architectures", "model", "model-DF11"]
    );
    fs::remove_dir_all(folder.target()).unwrap();
    let refused = |what: &str| {
        let error = folder.run(folder.world.options()).unwrap_err();
        assert_eq!(error.code, Code::PartialForeign, "{what}");
        assert!(partial.exists(), "{what}");
    };
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("mine.txt"), "mine").unwrap();
    refused("no marker");
    fs::write(partial.join(".df11.partial"), "something else").unwrap();
    refused("another marker");
    assert_eq!(fs::read(partial.join("mine.txt")).unwrap(), b"mine");
    fs::write(partial.join(".df11.partial"), "DF11-PARTIAL/1\r\n").unwrap();
    fs::create_dir(partial.join("folder")).unwrap();
    refused("a folder in it");
    fs::remove_dir_all(&partial).unwrap();
    fs::write(&partial, "a file").unwrap();
    refused("a file");
}

#[test]
fn a_second_run_waits_for_nobody() {
    let folder = ModelFolder::with_one_unit(4_000_000);
    let slow = Options {
        max_rate: Some(200_000),
        ..folder.world.options()
    };
    let job = Job::start(folder.plan(slow).unwrap()).unwrap();
    wait_for(&job, |now| now.bytes_in > 0);
    let second = folder.run(folder.world.options()).unwrap_err();
    assert_eq!(second.code, Code::TargetBusy);
    job.cancel();
    let _ = job.result();
    assert_clean(&folder);
}

#[test]
fn more_files_than_may_be_open_are_written() {
    let units = (0..150).map(|unit| {
        let name = format!("one.{unit}.weight");
        Tensor::bf16(&name, weights::realistic(unit, 300))
    });
    let folder = ModelFolder::in_layout(vec![units.collect()], "transformers");
    folder.run(folder.world.options()).unwrap();
    assert_eq!(contents(&folder.target()).len(), 152);
    assert_eq!(
        folder.run(folder.world.options()).unwrap().status,
        Status::AlreadyDone
    );
}

/// Whatever the moment at which runs meet, one succeeds at least, and nothing is left that would stop the next run.
#[test]
fn many_runs_at_once() {
    let folder = ModelFolder::with_one_unit(50);
    for _ in 0..40 {
        let start = || Job::start(folder.plan(folder.world.options()).unwrap()).unwrap();
        let jobs: Vec<_> = (0..4).map(|_| start()).collect();
        let outcomes: Vec<_> = jobs.iter().map(|job| job.result()).collect();
        assert_one_succeeds(&outcomes);
        assert_eq!(
            folder.world.files(),
            ["architectures", "model", "model-DF11"]
        );
        let names: Vec<_> = contents(&folder.target()).into_keys().collect();
        assert_eq!(
            names,
            ["config.json", "model.safetensors", "one_0.safetensors"]
        );
        assert_eq!(
            folder.run(folder.world.options()).unwrap().status,
            Status::AlreadyDone
        );
        fs::remove_dir_all(folder.target()).unwrap();
    }
}
