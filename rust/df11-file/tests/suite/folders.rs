//! Results that are folders: what each file holds, byte for byte, and that they are sound however they are cut.

use std::{borrow::Cow, collections::HashMap, fs, path::Path};

use df11_file::{
    Code, Options,
    check::{self, CheckOptions, Level},
    options::{ConfigVersion, Form, HeaderMode},
};
use safetensors::{Dtype, View, serialize};
use serde_json::Value;

use crate::common::{
    checkpoint::{Layout, Tensor, write},
    expected,
    folder::{CONFIG, ModelFolder, contents},
    result::ResultFile,
    weights,
};

fn bf16(name: &str, seed: u64, n: usize) -> Tensor {
    Tensor::bf16(name, weights::realistic(seed, n))
}

/// Two units, one of them cut by a file's border, with companions of two dtypes; and tensors of no unit.
pub fn model(layout: &str) -> ModelFolder {
    ModelFolder::in_layout(
        vec![
            vec![
                bf16("embed.weight", 6, 500),
                bf16("three.0.norm.weight", 7, 9),
                bf16("three.0.a.weight", 1, 70_001),
                Tensor::f32("three.0.scale", &[1.0, 1.001]),
            ],
            vec![
                bf16("three.0.c.weight", 4, 33),
                bf16("three.0.b.weight", 2, 300_000),
                bf16("one.0.weight", 3, 40_000),
                Tensor::f32("last.norm.weight", &[1.5, 1.001]),
            ],
        ],
        layout,
    )
}

/// A tensor as the reference crate writes it.
struct Plain<'a>(Dtype, Vec<usize>, &'a [u8]);

impl View for &Plain<'_> {
    fn dtype(&self) -> Dtype {
        self.0
    }
    fn shape(&self) -> &[usize] {
        &self.1
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.2.into()
    }
    fn data_len(&self) -> usize {
        self.2.len()
    }
}

/// The file of a unit as the official tool's library writes it.
fn shard(unit: &str, members: &[&str], companions: &[&str], source: &[Tensor]) -> Vec<u8> {
    let named = |name: &&str| source.iter().find(|tensor| tensor.name == **name).unwrap();
    let members: Vec<_> = members.iter().map(named).collect();
    let weights: Vec<u8> = members
        .iter()
        .flat_map(|member| member.bytes.clone())
        .collect();
    let fields = expected::unit(&weights);
    let mut sum = 0;
    let splits = members[..members.len() - 1].iter().flat_map(|member| {
        sum += member.bytes.len() as u64 / 2;
        sum.to_le_bytes()
    });
    let splits: Vec<u8> = splits.collect();
    let mut tensors: Vec<(String, Plain<'_>)> = Vec::new();
    for (field, bytes) in &fields {
        let shape = match *field {
            "luts" => vec![bytes.len() / 256, 256],
            _ => vec![bytes.len()],
        };
        tensors.push((format!("{unit}.{field}"), Plain(Dtype::U8, shape, bytes)));
    }
    let shape = vec![splits.len() / 8];
    tensors.push((
        format!("{unit}.split_positions"),
        Plain(Dtype::I64, shape, &splits),
    ));
    for tensor in companions.iter().map(named) {
        let dtype = if tensor.dtype == "F32" {
            Dtype::F32
        } else {
            Dtype::BF16
        };
        let shape = tensor.shape.iter().map(|&side| side as usize).collect();
        tensors.push((tensor.name.clone(), Plain(dtype, shape, &tensor.bytes)));
    }
    let views = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
    serialize(views, None).unwrap()
}

fn check(folder: &ModelFolder, path: &Path, level: Level, against: bool) -> Result<(), Code> {
    let options = CheckOptions {
        level,
        against: against.then(|| folder.path()),
        definitions: folder.world.options().definitions,
        samples: 3,
        ..CheckOptions::default()
    };
    let outcome = check::start(path, options).and_then(|task| task.result());
    outcome.map(|_| ()).map_err(|error| error.code)
}

#[test]
fn every_unit_has_its_file_as_the_official_library_writes_it() {
    for layout in ["transformers", "diffusers"] {
        let folder = model(layout);
        let source = folder.tensors();
        let three = shard(
            "three.0",
            &["three.0.a.weight", "three.0.b.weight", "three.0.c.weight"],
            &["three.0.norm.weight", "three.0.scale"],
            &source,
        );
        let one = shard("one.0", &["one.0.weight"], &[], &source);
        let rest = match layout {
            "diffusers" => "diffusion_pytorch_model.safetensors",
            _ => "model.safetensors",
        };
        for options in [folder.world.options(), folder.world.small()] {
            let report = folder.run(options).unwrap();
            let found = contents(&folder.target());
            let names: Vec<_> = found.keys().map(String::as_str).collect();
            let mut expected = [
                "config.json",
                rest,
                "one_0.safetensors",
                "three_0.safetensors",
            ];
            expected.sort_unstable();
            assert_eq!(names, expected);
            assert!(found["three_0.safetensors"] == three, "three.0 differs");
            assert!(found["one_0.safetensors"] == one, "one.0 differs");
            let total: usize = found.values().map(Vec::len).sum();
            assert_eq!(report.target_bytes, total as u64);
            assert_eq!((report.layout, report.units.len()), ("folder", 2));
            let rest = ResultFile::parse(&found[rest]);
            assert_eq!(rest.metadata["format"], "pt");
            let mut names: Vec<_> = rest.tensors.keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["embed.weight", "last.norm.weight", "toy.marker"]);
            for tensor in source
                .iter()
                .filter(|tensor| names.contains(&tensor.name.as_str()))
            {
                assert_eq!(rest.bytes(&tensor.name), tensor.bytes);
            }
            fs::remove_dir_all(folder.target()).unwrap();
        }
    }
}

#[test]
fn official_headers_describe_nothing_and_hold_bf16() {
    let folder = model("transformers");
    folder
        .run(Options {
            header: HeaderMode::Official,
            ..folder.world.options()
        })
        .unwrap();
    let rest = ResultFile::read(&folder.target().join("model.safetensors"));
    assert_eq!(
        rest.metadata,
        HashMap::from([("format".to_owned(), "pt".to_owned())])
    );
    assert_eq!(rest.tensors["last.norm.weight"].0, Dtype::BF16);
    let unit = ResultFile::read(&folder.target().join("three_0.safetensors"));
    assert_eq!(unit.tensors["three.0.scale"].0, Dtype::BF16);
    assert!(unit.metadata.is_empty());
    for against in [false, true] {
        assert_eq!(
            check(&folder, &folder.target(), Level::Full, against),
            Ok(())
        );
    }
}

#[test]
fn a_folder_of_one_file_is_the_file_with_a_configuration() {
    let folder = model("diffusers-single");
    for header in [HeaderMode::Official, HeaderMode::SelfDescribing] {
        let options = Options {
            header,
            ..folder.world.options()
        };
        folder.run(options.clone()).unwrap();
        let found = contents(&folder.target());
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["config.json", "model.safetensors"]);
        let file = folder.world.path("one.safetensors");
        let plan = df11_file::plan(&folder.path(), Some(&file), options).unwrap();
        df11_file::Job::start(plan).unwrap().result().unwrap();
        let alone = fs::read(&file).unwrap();
        let (a, b) = (
            ResultFile::parse(&found["model.safetensors"]),
            ResultFile::parse(&alone),
        );
        assert!(a.tensors == b.tensors, "other tensors");
        if header == HeaderMode::Official {
            assert!(found["model.safetensors"] == alone, "another file");
        }
        for level in [Level::Structure, Level::Sample, Level::Full] {
            assert_eq!(check(&folder, &folder.target(), level, true), Ok(()));
        }
        fs::remove_dir_all(folder.target()).unwrap();
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn the_configuration_is_the_sources_with_one_member_more() {
    let folder = model("transformers");
    for version in ConfigVersion::NAMES {
        folder
            .run(Options {
                config_version: version.parse().unwrap(),
                ..folder.world.options()
            })
            .unwrap();
        let text = fs::read_to_string(folder.target().join("config.json")).unwrap();
        let kept = CONFIG.trim_end().strip_suffix("\n}").unwrap();
        assert!(
            text.starts_with(&format!("{kept},\n  \"dfloat11_config\": {{\n")),
            "{text}"
        );
        assert!(text.ends_with("\n  }\n}\n"), "{text}");
        let config: Value = serde_json::from_str(&text).unwrap();
        let ours = &config["dfloat11_config"];
        assert_eq!(ours["version"], *version);
        assert_eq!(ours["threads_per_block"], serde_json::json!([512]));
        assert_eq!(ours["bytes_per_thread"], 8);
        let patterns = ours["pattern_dict"].to_string();
        assert_eq!(
            patterns,
            r#"{"three\\.\\d+":["a","b","c"],"one\\.\\d+":[]}"#
        );
        assert_eq!(
            check(&folder, &folder.target(), Level::Structure, false),
            Ok(())
        );
        fs::remove_dir_all(folder.target()).unwrap();
    }
    fs::write(folder.file("config.json"), "{}").unwrap();
    folder.run(folder.world.options()).unwrap();
    let text = fs::read_to_string(folder.target().join("config.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
    fs::remove_file(folder.file("config.json")).unwrap();
    let options = Options {
        architecture: "ToyFolder".into(),
        ..folder.world.options()
    };
    assert_eq!(folder.plan(options).unwrap_err().code, Code::Config);
}

#[test]
fn diffusers_configurations_are_those_of_published_models() {
    let folder = model("diffusers");
    folder.run(folder.world.options()).unwrap();
    let text = fs::read_to_string(folder.target().join("config.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<_> = config.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["dfloat11_config", "model_type"]);
    assert_eq!(config["model_type"], "llama");
}

#[test]
fn small_files_go_along_and_others_do_not() {
    let folder = model("transformers");
    let taken = [
        "tokenizer.json",
        "merges.txt",
        "tokenizer.model",
        "LICENSE",
        "modeling_toy.py",
    ];
    let left = [
        "README.md",
        ".hidden.json",
        "pytorch_model.bin",
        "other.index.json",
        "x.gguf",
    ];
    for name in taken.iter().chain(&left) {
        fs::write(folder.file(name), name).unwrap();
    }
    folder.run(folder.world.options()).unwrap();
    let found = contents(&folder.target());
    for name in taken {
        assert_eq!(found[name], name.as_bytes());
    }
    assert!(left.iter().all(|name| !found.contains_key(*name)));
}

#[test]
fn renamed_and_merged_files_are_as_sound_and_damaged_ones_are_not() {
    let folder = model("transformers");
    folder.run(folder.world.options()).unwrap();
    let target = folder.target();
    let levels = [Level::Structure, Level::Hash, Level::Sample, Level::Full];
    let all = |expected: Result<(), Code>| {
        for level in levels {
            assert_eq!(check(&folder, &target, level, false), expected, "{level:?}");
        }
        assert_eq!(check(&folder, &target, Level::Full, true), expected);
    };
    all(Ok(()));
    fs::rename(
        target.join("one_0.safetensors"),
        target.join("z.safetensors"),
    )
    .unwrap();
    all(Ok(()));
    // Two files become one, in another order, before all others.
    let mut tensors = Vec::new();
    for name in ["z.safetensors", "three_0.safetensors"] {
        let file = ResultFile::read(&target.join(name));
        for (name, (dtype, shape, bytes)) in file.tensors {
            let dtype = match dtype {
                Dtype::U8 => "U8",
                Dtype::I64 => "I64",
                Dtype::F32 => "F32",
                _ => "BF16",
            };
            let shape: Vec<_> = shape.iter().map(|&side| side as u64).collect();
            tensors.push(Tensor::new(&name, dtype, &shape, bytes));
        }
        fs::remove_file(target.join(name)).unwrap();
    }
    write(&target.join("a.safetensors"), &tensors, &Layout::default());
    all(Ok(()));
    let field = tensors
        .iter_mut()
        .find(|tensor| tensor.name == "one.0.sign_mantissa");
    field.unwrap().bytes[77] ^= 1;
    write(&target.join("a.safetensors"), &tensors, &Layout::default());
    assert_eq!(
        check(&folder, &target, Level::Hash, false),
        Err(Code::Verify)
    );
    assert_eq!(
        check(&folder, &target, Level::Full, true),
        Err(Code::Verify)
    );
    fs::remove_file(target.join("a.safetensors")).unwrap();
    assert!(
        check(&folder, &target, Level::Structure, false).is_err(),
        "units are missing"
    );
}

#[test]
fn a_configuration_that_does_not_fit_the_units_is_refused() {
    let folder = model("transformers");
    folder.run(folder.world.options()).unwrap();
    let path = folder.target().join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("0.5.0", "0.1.0"),
        ("512", "256"),
        ("\"bytes_per_thread\": 8", "\"bytes_per_thread\": 4"),
        (r"one\\.", r"two\\."),
        ("\"a\",", ""),
        ("pattern_dict", "patterns"),
    ] {
        let changed = text.replace(from, to);
        assert!(changed != text, "{from}");
        fs::write(&path, changed).unwrap();
        let found = check(&folder, &folder.target(), Level::Structure, false);
        assert_eq!(found, Err(Code::Config), "{from}");
    }
}

#[test]
fn models_of_one_file_have_no_folder() {
    let folder = model("transformers");
    folder
        .world
        .define(crate::common::world::World::definition());
    fs::remove_file(folder.file("config.json")).unwrap();
    for form in [Form::Folder, Form::FolderSingle] {
        let options = Options {
            form: Some(form),
            ..folder.world.options()
        };
        assert_eq!(folder.plan(options).unwrap_err().code, Code::Option);
    }
}

#[test]
fn units_that_stay_as_they_are_lie_with_the_other_tensors() {
    let folder = ModelFolder::in_layout(
        vec![vec![
            bf16("one.0.weight", 3, 400_000),
            Tensor::bf16("one.1.weight", vec![0x80, 0x7F]),
        ]],
        "transformers",
    );
    folder
        .run(Options {
            keep_uncompressed: true,
            ..folder.world.options()
        })
        .unwrap();
    let names: Vec<_> = contents(&folder.target()).into_keys().collect();
    assert_eq!(
        names,
        ["config.json", "model.safetensors", "one_0.safetensors"]
    );
    assert_eq!(check(&folder, &folder.target(), Level::Full, true), Ok(()));
}

/// The official tool writes the dtypes of the model as its library has loaded it: those of the source, BF16, or F32.
#[test]
fn copied_tensors_of_either_dtype_are_what_the_source_has() {
    let folder = model("transformers");
    let official = Options {
        header: HeaderMode::Official,
        ..folder.world.options()
    };
    folder.run(official).unwrap();
    let rest = folder.target().join("model.safetensors");
    let sound = || check(&folder, &folder.target(), Level::Full, true);
    assert_eq!(sound(), Ok(()));
    let file = ResultFile::read(&rest);
    let norm = "last.norm.weight";
    let with = |changed: &str, dtype: &'static str, values: &[u8]| {
        let tensors = file.tensors.iter().map(|(name, (_, shape, bytes))| {
            let shape: Vec<_> = shape.iter().map(|&side| side as u64).collect();
            if name == changed {
                Tensor::new(name, dtype, &shape, values.to_vec())
            } else {
                Tensor::new(name, "BF16", &shape, bytes.clone())
            }
        });
        write(&rest, &tensors.collect::<Vec<_>>(), &Layout::default());
    };
    let source = folder.tensors();
    let source = source.into_iter().find(|tensor| tensor.name == norm);
    let mut values = source.unwrap().bytes;
    with(norm, "F32", &values);
    assert_eq!(sound(), Ok(()));
    values[0] ^= 1;
    with(norm, "F32", &values);
    assert_eq!(sound(), Err(Code::Verify));
    with(norm, "F16", &values[..4]);
    assert_eq!(sound(), Err(Code::Verify));
    // And of a tensor that the source has in BF16, widened.
    with("toy.marker", "F32", &[0, 0, 0x80, 0x3F]);
    assert_eq!(sound(), Ok(()));
    with("toy.marker", "F32", &[1, 0, 0x80, 0x3F]);
    assert_eq!(sound(), Err(Code::Verify));
}
