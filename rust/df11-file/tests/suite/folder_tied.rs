//! Tensors that a model takes from others: left out, compressed a second time, or refused.

use std::fs;

use df11_file::{
    Code, Options,
    check::{self, CheckOptions},
    restore::{self, RestoreOptions},
};

use crate::common::{
    checkpoint::Tensor,
    folder::{ModelFolder, contents, definition},
    result::ResultFile,
    weights,
};

fn embed(name: &str) -> Tensor {
    Tensor::bf16(name, weights::realistic(8, 5_000))
}

fn unit() -> Tensor {
    Tensor::bf16("one.0.weight", weights::realistic(3, 40_000))
}

fn sound(folder: &ModelFolder) {
    for against in [None, Some(folder.path())] {
        let options = CheckOptions {
            against,
            definitions: folder.world.options().definitions,
            ..CheckOptions::default()
        };
        check::start(&folder.target(), options)
            .unwrap()
            .result()
            .unwrap();
    }
    let back = folder.world.path("back");
    let task = restore::start(&folder.target(), Some(&back), RestoreOptions::default());
    task.unwrap().result().unwrap();
    assert!(
        contents(&back) == contents(&folder.path()),
        "other files come back"
    );
}

#[test]
fn a_copy_of_the_other_tensor_is_left_out_and_comes_back() {
    let shards = vec![
        vec![embed("embed.weight"), unit()],
        vec![embed("head.weight")],
    ];
    let folder = ModelFolder::in_layout(shards, "transformers");
    folder.run(folder.world.options()).unwrap();
    let rest = ResultFile::read(&folder.target().join("model.safetensors"));
    assert!(rest.tensors.contains_key("embed.weight"));
    assert!(!rest.tensors.contains_key("head.weight"));
    sound(&folder);
}

#[test]
fn one_that_differs_is_refused_by_its_place() {
    let mut head = embed("head.weight");
    head.bytes[2 * 4_321] ^= 1;
    let folder = ModelFolder::in_layout(
        vec![vec![embed("embed.weight"), unit(), head]],
        "transformers",
    );
    let error = folder.run(folder.world.options()).unwrap_err();
    assert_eq!((error.code, error.index), (Code::Tied, Some(4_321)));
    assert_eq!(error.tensor.as_deref(), Some("head.weight"));
    assert_eq!(folder.world.files(), ["architectures", "model"]);
    // A model that says that it is not tied has two tensors.
    fs::write(
        folder.file("config.json"),
        r#"{"tie_word_embeddings": false}"#,
    )
    .unwrap();
    folder.run(folder.world.options()).unwrap();
    let rest = ResultFile::read(&folder.target().join("model.safetensors"));
    assert!(rest.tensors.contains_key("head.weight"));
    sound(&folder);
}

/// A model whose unit `head` is tied to `embed`, which may be a unit too; the source may have both.
fn model(tensor: fn(&str) -> Tensor, with_head: bool, is_unit: bool) -> ModelFolder {
    let mut tensors = vec![tensor("embed.weight"), unit()];
    if with_head {
        tensors.push(tensor("head.weight"));
    }
    let folder = ModelFolder::in_layout(vec![tensors], "transformers");
    let units = if is_unit {
        "one.0|head|embed"
    } else {
        "one.0|head"
    };
    let text = definition("transformers").replace(r"one\.\d+", units);
    folder.world.define(&text);
    folder
}

#[test]
fn a_unit_that_the_source_does_not_have_is_made_of_the_other() {
    for with_head in [false, true] {
        for is_unit in [false, true] {
            let folder = model(embed, with_head, is_unit);
            folder.run(folder.world.options()).unwrap();
            let head = ResultFile::read(&folder.target().join("head.safetensors"));
            head.assert_unit("head", &embed("").bytes);
            sound(&folder);
            fs::remove_dir_all(folder.target()).unwrap();
            let small = Options {
                keep_uncompressed: true,
                ..folder.world.small()
            };
            folder.run(small).unwrap();
        }
    }
}

/// Where DF11 cannot hold it, the module stays as it is, and so may the other: the source comes back all the same.
#[test]
fn a_tied_module_that_stays_as_it_is_comes_back() {
    for with_head in [false, true] {
        for is_unit in [false, true] {
            let infinite = |name: &str| {
                let mut tensor = embed(name);
                tensor.bytes[100..102].copy_from_slice(&[0x80, 0x7F]);
                tensor
            };
            let folder = model(infinite, with_head, is_unit);
            let kept = Options {
                keep_uncompressed: true,
                ..folder.world.options()
            };
            folder.run(kept).unwrap();
            let rest = ResultFile::read(&folder.target().join("model.safetensors"));
            for name in ["head.weight", "embed.weight"] {
                assert!(rest.bytes(name) == infinite("").bytes, "{name}");
            }
            sound(&folder);
        }
    }
}
