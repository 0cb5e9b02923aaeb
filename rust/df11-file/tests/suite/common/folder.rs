//! A source in a folder: files of tensors, their index, a configuration.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use df11_file::{Job, Options, Plan, Report, plan};
use serde_json::{Value, json};

use super::{
    checkpoint::{Layout, Tensor, write},
    weights,
    world::World,
};

/// A folder beside the architectures of a [`World`], with the toy's marker in its last file.
pub struct ModelFolder {
    pub world: World,
    shards: Vec<(String, Vec<Tensor>)>,
}

impl ModelFolder {
    /// A folder of these files, numbered as usual, with their index.
    pub fn new(shards: Vec<Vec<Tensor>>) -> Self {
        let count = shards.len();
        let mut shards: Vec<_> = shards
            .into_iter()
            .enumerate()
            .map(|(index, tensors)| {
                let name = format!("model-{:05}-of-{count:05}.safetensors", index + 1);
                (name, tensors)
            })
            .collect();
        let marker = Tensor::bf16("toy.marker", vec![0x80, 0x3F]);
        shards.last_mut().unwrap().1.push(marker);
        let folder = Self {
            world: World::new(Vec::new()),
            shards,
        };
        fs::remove_file(folder.world.source()).unwrap();
        fs::create_dir(folder.path()).unwrap();
        for (name, tensors) in &folder.shards {
            write(&folder.file(name), tensors, &Layout::default());
        }
        folder.write_index(&folder.index());
        folder
    }

    pub fn path(&self) -> PathBuf {
        self.world.path("model")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The name of a file.
    pub fn shard(&self, number: usize) -> &str {
        &self.shards[number].0
    }

    /// All tensors, in the order of the files.
    pub fn tensors(&self) -> Vec<Tensor> {
        let tensors = self.shards.iter().flat_map(|(_, tensors)| tensors);
        tensors.cloned().collect()
    }

    /// The index as it should be.
    pub fn index(&self) -> Value {
        let mut map = serde_json::Map::new();
        for (name, tensors) in &self.shards {
            for tensor in tensors {
                map.insert(tensor.name.clone(), name.as_str().into());
            }
        }
        json!({ "metadata": { "total_size": 1 }, "weight_map": map })
    }

    pub fn index_path(&self) -> PathBuf {
        self.file("model.safetensors.index.json")
    }

    pub fn write_index(&self, index: &Value) {
        fs::write(self.index_path(), index.to_string()).unwrap();
    }
}

/// The toy as a model of transformers, of which `head.weight` is tied to `embed.weight`.
pub fn definition(layout: &str) -> String {
    let tied = if layout == "transformers" {
        r#"tied = [["head.weight", "embed.weight"]]"#
    } else {
        ""
    };
    let keys = World::definition();
    let keys = &keys[keys.find("[[units]]").unwrap()..];
    format!(
        r#"
schema = 1
id = "ToyFolder"
name = "a toy in a folder"
source = "made up for tests"
layout = "{layout}"
{tied}

[loader]
node = "ToyModel"
pack = "toys"
url = "https://example.org"

[detect]
all = ["toy.marker"]

{keys}"#
    )
}

/// A configuration with what re-writing would change.
pub const CONFIG: &str =
    "{\n  \"model_type\": \"toy\",\n  \"eps\": 1e-05,\n  \"a\": {\"z\": 1, \"b\": 0.10}\n}\n";

impl ModelFolder {
    /// The same as a model of a layout, with a configuration.
    pub fn in_layout(shards: Vec<Vec<Tensor>>, layout: &str) -> Self {
        let folder = Self::new(shards);
        fs::write(folder.file("config.json"), CONFIG).unwrap();
        folder.world.define(&definition(layout));
        folder
    }

    /// One of a single unit of so many weights, `one.0`, for transformers.
    pub fn with_one_unit(weights: usize) -> Self {
        let unit = Tensor::bf16("one.0.weight", weights::realistic(1, weights));
        Self::in_layout(vec![vec![unit]], "transformers")
    }

    /// Where results go unless the test says otherwise.
    pub fn target(&self) -> PathBuf {
        self.world.path("model-DF11")
    }

    pub fn plan(&self, options: Options) -> df11_file::Result<Plan> {
        plan(&self.path(), None, options)
    }

    pub fn run(&self, options: Options) -> df11_file::Result<Report> {
        Job::start(self.plan(options)?)?.result()
    }
}

/// The files of a folder, by name.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}
