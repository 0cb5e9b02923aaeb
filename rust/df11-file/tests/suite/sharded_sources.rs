//! Sources of several files: read as one, and every fault of any file named before work.

use std::fs;

use df11_file::{Code, Error, Job, Options, Source, plan};
use proptest::{collection, prelude::*};
use serde_json::{Value, json};

use crate::common::{
    checkpoint::{Layout, Tensor, file_bytes, write},
    folder::ModelFolder,
    result::ResultFile,
    weights,
    world::World,
};

fn bf16(name: &str, seed: u64, n: usize) -> Tensor {
    Tensor::bf16(name, weights::realistic(seed, n))
}

/// A unit whose tensors lie in three files, and one that lies in the last.
fn folder() -> ModelFolder {
    ModelFolder::new(vec![
        vec![
            bf16("three.0.b.weight", 1, 70_001),
            Tensor::f32("norm.weight", &[1.0, 1.001]),
        ],
        vec![bf16("three.0.a.weight", 2, 300_000)],
        vec![
            bf16("one.0.weight", 3, 40_000),
            bf16("three.0.c.weight", 4, 33),
            bf16("three.0.a.bias", 5, 7),
        ],
    ])
}

fn refusal(folder: &ModelFolder) -> Error {
    let outcome = plan(&folder.path(), None, folder.world.options());
    outcome.map(|_| ()).expect_err("a refusal")
}

/// The codes of an error and of those found with it.
fn codes(error: &Error) -> Vec<Code> {
    let also = error.also.iter().map(|other| other.code);
    [error.code].into_iter().chain(also).collect()
}

#[test]
fn the_result_is_that_of_one_file() {
    let folder = folder();
    let world = World::new(Vec::new());
    write(&world.source(), &folder.tensors(), &Layout::default());
    for options in [
        folder.world.options(),
        Options {
            header: df11_file::options::HeaderMode::Official,
            ..folder.world.options()
        },
        folder.world.small(),
    ] {
        for source in [folder.path(), folder.index_path()] {
            let job = Job::start(plan(&source, None, options.clone()).unwrap()).unwrap();
            let report = job.result().unwrap();
            let target = folder.world.path("model-DF11.safetensors");
            assert_eq!(report.target, target.display().to_string());
            let (found, expected) = (fs::read(&target).unwrap(), world.result(options.clone()));
            let (found, expected) = (ResultFile::parse(&found), ResultFile::parse(&expected));
            assert!(found.tensors == expected.tensors, "other tensors");
            assert_eq!(found.order, expected.order);
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn a_result_is_skipped_until_any_file_changes() {
    let folder = folder();
    let run = || {
        let plan = plan(&folder.path(), None, folder.world.options())?;
        Job::start(plan)?.result().map(|report| report.status)
    };
    run().unwrap();
    assert_eq!(run().unwrap(), df11_file::Status::AlreadyDone);
    for number in 0..3 {
        let path = folder.file(folder.shard(number));
        let (bytes, time) = (
            fs::read(&path).unwrap(),
            fs::metadata(&path).unwrap().modified().unwrap(),
        );
        fs::write(&path, &bytes).unwrap();
        let touch = |time| {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(time).unwrap();
        };
        touch(time - std::time::Duration::from_secs(3600));
        assert_eq!(run().unwrap_err().code, Code::TargetExists);
        touch(time);
        assert_eq!(run().unwrap(), df11_file::Status::AlreadyDone);
    }
}

#[test]
fn every_faulty_file_is_named() {
    let folder = folder();
    fs::remove_file(folder.file(folder.shard(0))).unwrap();
    let second = folder.file(folder.shard(1));
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    fs::write(folder.file(folder.shard(2)), "<html>").unwrap();
    let error = refusal(&folder);
    assert_eq!(
        codes(&error),
        [Code::Read, Code::Truncated, Code::NotSafetensors]
    );
    let text = error.to_string();
    for number in 0..3 {
        assert!(text.contains(folder.shard(number)), "{text}");
    }
}

#[test]
fn an_index_that_disagrees_is_refused_by_tensor() {
    let folder = folder();
    let shard = |number: usize| Value::from(folder.shard(number));
    let changes: [(&str, Option<Value>, &str); 4] = [
        ("one.0.weight", None, "the index does not name it"),
        ("one.0.weight", Some(shard(1)), "the index says"),
        ("not.there", Some(shard(0)), "which does not"),
        (
            "not.there",
            Some("other.safetensors".into()),
            "cannot be read",
        ),
    ];
    for (tensor, file, words) in changes {
        let mut index = folder.index();
        let map = index["weight_map"].as_object_mut().unwrap();
        match file {
            Some(file) => map.insert(tensor.to_owned(), file),
            None => map.shift_remove(tensor),
        };
        folder.write_index(&index);
        let error = refusal(&folder);
        assert!([Code::Index, Code::Read].contains(&error.code), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.code == Code::Read || error.tensor.as_deref() == Some(tensor));
    }
}

#[test]
fn a_tensor_in_two_files_is_refused() {
    let folder = folder();
    let again = [bf16("three.0.a.weight", 2, 300_000), bf16("x", 1, 3)];
    write(
        &folder.file(folder.shard(0)),
        &[&folder.tensors()[..2], &again[..1]].concat(),
        &Layout::default(),
    );
    let error = refusal(&folder);
    assert_eq!(error.code, Code::Index);
    assert_eq!(error.tensor.as_deref(), Some("three.0.a.weight"));
    // Also where no index says which.
    fs::remove_file(folder.index_path()).unwrap();
    assert_eq!(refusal(&folder).code, Code::Index);
}

#[test]
fn hostile_indices_are_refused() {
    let folder = folder();
    fs::write(
        folder.world.path("secret.safetensors"),
        file_bytes(&[bf16("x", 1, 3)], &Layout::default()),
    )
    .unwrap();
    for name in [
        "../secret.safetensors",
        "/etc/passwd",
        "..\\secret.safetensors",
        "C:secret.safetensors",
        "a/b.safetensors",
        "..",
        "",
        "nul.safetensors",
        "a\0b.safetensors",
    ] {
        folder.write_index(&json!({ "weight_map": { "x": name } }));
        let error = refusal(&folder);
        assert_eq!(error.code, Code::Index, "{name:?}");
        assert_eq!(error.path, Some(folder.index_path()), "{name:?}");
    }
    for text in [
        "",
        "[]",
        "{}",
        r#"{"weight_map": {}}"#,
        r#"{"weight_map": []}"#,
        r#"{"weight_map": {"a": 1}}"#,
        r#"{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}"#,
        r#"{"weight_map": {"a": "x.safetensors"}"#,
        "\u{feff}{}",
    ] {
        fs::write(folder.index_path(), text).unwrap();
        assert_eq!(refusal(&folder).code, Code::Index, "{text}");
    }
    fs::write(folder.index_path(), [0xFF, 0xFE]).unwrap();
    assert_eq!(refusal(&folder).code, Code::Index);
}

#[test]
fn a_long_index_counts_towards_the_budget() {
    let folder = folder();
    let mut text = folder.index().to_string();
    text.push_str(&" ".repeat(4 << 20));
    fs::write(folder.index_path(), text).unwrap();
    let outcome = plan(&folder.path(), None, folder.world.small());
    assert_eq!(outcome.map(|_| ()).unwrap_err().code, Code::NoMemory);
    plan(&folder.path(), None, folder.world.options()).unwrap();
}

#[test]
fn folders_that_are_no_model_are_told_apart() {
    let world = World::of_unit(weights::realistic(1, 9));
    let path = world.path("other");
    fs::create_dir(&path).unwrap();
    let refused = |file: &str, text: &str| {
        fs::write(path.join(file), text).unwrap();
        let error = plan(&path, None, world.options()).map(|_| ());
        let error = error.expect_err("a refusal");
        fs::remove_file(path.join(file)).unwrap();
        error
    };
    for (file, words) in [
        ("model_index.json", "pipeline"),
        ("pytorch_model.bin", "pickle"),
        ("other.txt", "without .safetensors"),
    ] {
        let error = refused(file, "{}");
        assert_eq!(error.code, Code::NotSafetensors);
        assert!(error.message.contains(words), "{error}");
    }
    for text in ["[]", "{", "{\"a\": NaN}", "\u{feff}{}"] {
        let error = refused("config.json", text);
        assert_eq!(error.code, Code::Config, "{text}");
        assert_eq!(error.path, Some(path.join("config.json")));
    }
    fs::write(path.join("config.json"), "{}").unwrap();
    assert_eq!(refused("x.txt", "").code, Code::NotSafetensors);
    for name in ["a.safetensors", "b.safetensors"] {
        fs::copy(world.source(), path.join(name)).unwrap();
    }
    let error = refused("x.txt", "");
    assert_eq!(error.code, Code::Index);
    assert!(error.message.contains("a.safetensors, b.safetensors"));
    // Of several, that with the usual name is the model.
    fs::remove_file(path.join("config.json")).unwrap();
    fs::copy(world.source(), path.join("model.safetensors")).unwrap();
    plan(&path, None, world.options()).unwrap();
}

#[test]
fn the_source_folder_takes_no_result() {
    let folder = folder();
    for source in [folder.path(), folder.index_path()] {
        let target = folder.file("result.safetensors");
        let outcome = plan(&source, Some(&target), folder.world.options());
        assert_eq!(outcome.map(|_| ()).unwrap_err().code, Code::TargetIsSource);
    }
}

#[test]
fn reads_cross_the_borders_of_files() {
    let shards = [5, 0, 1, 40].map(|n| vec![bf16(&format!("x{n}"), n as u64, n)]);
    let mut all: Vec<u8> = shards
        .iter()
        .flatten()
        .flat_map(|t| t.bytes.clone())
        .collect();
    all.extend([0x80, 0x3F]);
    let folder = ModelFolder::new(shards.to_vec());
    let source = Source::open(&folder.path()).unwrap();
    for start in 0..all.len() {
        for end in start..=all.len() {
            let mut buffer = vec![0; end - start];
            source.read(&mut buffer, start as u64).unwrap();
            assert_eq!(buffer, all[start..end]);
        }
        let mut beyond = vec![0; all.len() - start + 1];
        assert!(source.read(&mut beyond, start as u64).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_indices_never_panic(text in collection::vec(any::<char>(), 0..60), name in ".{0,12}") {
        let folder = ModelFolder::new(vec![Vec::new()]);
        fs::write(folder.index_path(), text.iter().collect::<String>()).unwrap();
        let _ = Source::open(&folder.path());
        folder.write_index(&json!({ "weight_map": { "toy.marker": name } }));
        prop_assert!(Source::open(&folder.path()).is_err());
    }
}
