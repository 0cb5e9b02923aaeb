//! What people have instead of a checkpoint, given to every command; and what is odd about a checkpoint but does no harm. With the built-in
//! architectures, on a small model of FLUX.1's layout.

use std::{fs, path::Path};

use df11_file::{
    Code, Error, Job, Options, Result,
    check::{self, CheckOptions},
    options::{Cast, HeaderMode},
    plan,
    restore::{self, RestoreOptions},
};
use tempfile::TempDir;

use crate::common::{
    checkpoint::{Layout, Tensor, file_bytes, with_length},
    weights,
};

pub const QKV: &str = "double_blocks.0.img_attn.qkv.weight";
const LINEAR1: &str = "single_blocks.0.linear1.weight";
pub const PREFIX: &str = "model.diffusion_model.";

pub fn bf16(name: &str) -> Tensor {
    Tensor::bf16(name, weights::realistic(name.len() as u64, 96))
}

/// Two units and some other tensors.
pub fn flux() -> Vec<Tensor> {
    let double = ["img", "txt"].iter().flat_map(|stream| {
        ["mod.lin", "attn.qkv", "attn.proj", "mlp.0", "mlp.2"]
            .map(|part| format!("double_blocks.0.{stream}_{part}.weight"))
    });
    let single = ["modulation.lin", "linear1", "linear2"]
        .map(|part| format!("single_blocks.0.{part}.weight"));
    let others = [
        "img_in.weight",
        "img_in.bias",
        "vector_in.in_layer.weight",
        "guidance_in.in_layer.weight",
        "double_blocks.0.img_attn.norm.key_norm.scale",
        "final_layer.linear.weight",
    ];
    let names = double.chain(single).chain(others.map(str::to_owned));
    names.map(|name| bf16(&name)).collect()
}

/// The model with one tensor in another form.
pub fn with(tensor: Tensor) -> Vec<Tensor> {
    let mut tensors = flux();
    match tensors.iter_mut().find(|other| other.name == tensor.name) {
        Some(other) => *other = tensor,
        None => tensors.push(tensor),
    }
    tensors
}

pub fn quantised(extra: &[(&str, &'static str, &[u8])]) -> Vec<Tensor> {
    let mut tensors = flux();
    for (name, dtype, bytes) in extra {
        let side = bytes.len() as u64 / if *dtype == "F32" { 4 } else { 1 };
        let tensor = Tensor::new(name, dtype, &[side], bytes.to_vec());
        tensors.retain(|other| other.name != *name);
        tensors.push(tensor);
    }
    tensors
}

pub fn bytes(tensors: &[Tensor]) -> Vec<u8> {
    file_bytes(tensors, &Layout::default())
}

/// A folder with one file.
pub struct Place {
    folder: TempDir,
    name: &'static str,
}

impl Place {
    pub fn new(bytes: &[u8]) -> Self {
        Self::named("model.safetensors", bytes)
    }

    pub fn named(name: &'static str, bytes: &[u8]) -> Self {
        let place = Self {
            folder: TempDir::new().unwrap(),
            name,
        };
        fs::write(place.file(), bytes).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub fn file(&self) -> std::path::PathBuf {
        self.path(self.name)
    }

    pub fn compress(&self, options: Options) -> Result<df11_file::Report> {
        Job::start(plan(&self.file(), None, options)?)?.result()
    }
}

/// The error of each command. None may end well.
pub fn doors(file: &Path) -> [Error; 3] {
    let planned = plan(file, None, Options::default()).map(|_| ());
    let checked = check::start(file, CheckOptions::default());
    let checked = checked.and_then(|task| task.result()).map(|_| ());
    let restored = restore::start(file, None, RestoreOptions::default());
    let restored = restored.and_then(|task| task.result()).map(|_| ());
    [planned, checked, restored].map(|outcome| outcome.expect_err("a refusal"))
}

pub fn assert_says(error: &Error, code: Code, file: &Path, words: &[&str]) {
    assert_eq!(error.code, code, "{error}");
    assert_eq!(error.path.as_deref(), Some(file), "{error}");
    assert!(!error.hint.is_empty(), "{error}");
    let text = error.to_string();
    for part in words.iter().chain(&[file.to_str().unwrap()]) {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

fn header(members: &str, data: usize) -> Vec<u8> {
    with_length(format!("{{{members}}}").as_bytes(), &vec![0; data])
}

/// Whichever command is given it, the same is said.
#[test]
#[allow(clippy::too_many_lines)] // a table
fn files_that_are_no_sound_safetensors_files() {
    let good = bytes(&flux());
    let length = u64::from_le_bytes(*good.first_chunk().unwrap()) as usize;
    let data = good.len() - 8 - length;
    let has = format!("has {} of {data} bytes of data", data - 1000);
    let tensor = |name: &str, shape: &str, from: u64, to: u64| {
        format!(r#""{name}":{{"dtype":"BF16","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let two = |second: String| header(&[tensor("a", "[4]", 0, 8), second].join(","), 16);
    let lie = |bytes: u64| [&bytes.to_le_bytes(), &good[8..]].concat();
    let not = Code::NotSafetensors;
    let cases: [(Vec<u8>, Code, &[&str]); 27] = [
        (b"GGUF\x03\0\0\0\0\0\0\0".to_vec(), not, &["GGUF", "BF16"]),
        (
            b"PK\x03\x04\0\0\0\0\0\0".to_vec(),
            not,
            &["pickle", "Convert"],
        ),
        (b"\x80\x02}q\0X\x05\0\0\0".to_vec(), not, &["pickle"]),
        (
            b"version https://git-lfs.github.com/spec/v1\n".to_vec(),
            not,
            &["git LFS", "lfs pull"],
        ),
        (
            b"<!DOCTYPE html><html>403</html>".to_vec(),
            not,
            &["web page", "login"],
        ),
        (Vec::new(), not, &["empty", "again"]),
        (b"\x02\0\0\0{}".to_vec(), not, &["too short"]),
        (
            b"Repository not found".to_vec(),
            not,
            &["not a safetensors file"],
        ),
        (
            b"DF11-PARTIAL/1\r\n\0\0\0\0".to_vec(),
            not,
            &["unfinished", "again"],
        ),
        (
            br#"{"weight_map":{"a":"1.safetensors"}}"#.to_vec(),
            not,
            &["not a safetensors file"],
        ),
        (lie(150_000_000), not, &["not a safetensors file"]),
        (
            good[..good.len() - 1000].to_vec(),
            Code::Truncated,
            &[&has, "repeat it"],
        ),
        (
            good[..100].to_vec(),
            Code::Truncated,
            &["has 92 of", "of its header"],
        ),
        (
            [&good, &b"</html>"[..]].concat(),
            Code::TrailingBytes,
            &["7 bytes follow"],
        ),
        (lie(length as u64 - 1), Code::Header, &["not valid"]),
        (lie(length as u64 + 1), Code::Header, &["not valid"]),
        (lie(0), Code::Header, &["begin"]),
        (
            two(tensor("a", "[4]", 8, 16)),
            Code::Header,
            &["tensor a", "twice"],
        ),
        (
            two(tensor("a", "[4]", 0, 8)),
            Code::Header,
            &["tensor a", "twice"],
        ),
        (
            two(tensor("b", "[4]", 4, 12)),
            Code::Header,
            &["tensor b", "overlaps"],
        ),
        (
            two(tensor("b", "[3]", 10, 16)),
            Code::Header,
            &["tensor b", "hole"],
        ),
        (
            two(tensor("b", "[5]", 8, 16)),
            Code::Header,
            &["tensor b", "8 bytes", "80 bits"],
        ),
        (
            two(tensor("b", "[4294967296,4294967296]", 8, 16)),
            Code::Header,
            &["tensor b", "too large"],
        ),
        (
            two(tensor("b", "[4]", 16, 8)),
            Code::Header,
            &["tensor b", "backwards"],
        ),
        (
            two(tensor("b", "[4]", 8, 16).replace("BF16", "F4_WEIRD")),
            Code::Header,
            &["tensor b", "F4_WEIRD"],
        ),
        (
            header(r#""__metadata__":{"step":3}"#, 0),
            Code::Header,
            &["__metadata__"],
        ),
        (
            header(r#""__metadata__":{},"__metadata__":{}"#, 0),
            Code::Header,
            &["__metadata__", "twice"],
        ),
    ];
    for (bytes, code, words) in cases {
        let place = Place::new(&bytes);
        for error in doors(&place.file()) {
            assert_says(&error, code, &place.file(), words);
        }
    }
    let folder = TempDir::new().unwrap();
    for error in doors(folder.path()) {
        assert_says(&error, not, folder.path(), &["folder"]);
    }
}

/// Exponents that DF11 has no room for are found while reading.
#[test]
fn weights_without_room() {
    for (word, index) in [(0x7FC0_u16, 0), (0x7F80, 1), (240 << 7, 95)] {
        let mut tensor = bf16(LINEAR1);
        tensor.bytes[index * 2..][..2].copy_from_slice(&word.to_le_bytes());
        let place = Place::new(&bytes(&with(tensor)));
        let error = place.compress(Options::default()).unwrap_err();
        let at = format!("index {index}");
        let words = ["unit single_blocks.0", LINEAR1, &at];
        assert_says(&error, Code::Exponent, &place.file(), &words);
    }
}

/// What the reference implementation reads, and what does no harm, is compressed, checked, and comes back.
#[test]
fn odd_but_harmless() {
    let odd = Layout {
        odd: true,
        reversed_data: true,
        metadata: vec![("日本".to_owned(), "\"\\\n\u{1F600}".to_owned())],
    };
    let plain = bytes(&flux());
    let length = u64::from_le_bytes(*plain.first_chunk().unwrap()) as usize;
    let json = std::str::from_utf8(&plain[8..8 + length]).unwrap();
    let with_metadata = |metadata: &str| {
        let json = json.replacen('{', &format!(r#"{{"__metadata__":{metadata},"#), 1);
        with_length(json.as_bytes(), &plain[8 + length..])
    };
    let empty = |name: &str, dtype| Tensor::new(name, dtype, &[3, 0], Vec::new());
    let constant = |tensor: Tensor| Tensor {
        bytes: vec![0; tensor.bytes.len()],
        ..tensor
    };
    let in_unit = |tensor: &Tensor| tensor.name.starts_with("single_blocks");
    let zeros = flux().into_iter().map(|tensor| {
        if in_unit(&tensor) {
            constant(tensor)
        } else {
            tensor
        }
    });
    let beside = [
        Tensor::f32("first_stage_model.encoder.weight", &[1.5]),
        Tensor::new("cond_stage_model.t.weight", "F16", &[2], vec![0; 4]),
    ];
    let prefixed = |prefix: &str| {
        let named = flux().into_iter().map(|mut tensor| {
            tensor.name.insert_str(0, prefix);
            tensor
        });
        named.chain(beside.clone()).collect::<Vec<_>>()
    };
    let cases = [
        plain.clone(),
        with_metadata("{}"),
        with_metadata("null"),
        with_metadata(r#"{"":""}"#),
        file_bytes(&flux(), &odd),
        bytes(
            &[
                vec![empty("first", "F16")],
                with(empty("img_in.bias", "BF16")),
                vec![empty("last", "I64")],
            ]
            .concat(),
        ),
        bytes(
            &[
                vec![Tensor::new("a", "U8", &[1], vec![1])],
                flux(),
                vec![Tensor::new("b", "U8", &[3], vec![1; 3])],
            ]
            .concat(),
        ),
        bytes(&with(Tensor::f32("img_in.bias", &[1.001, f32::NAN]))),
        bytes(&with(Tensor::new("ünï 日本\u{7}", "BOOL", &[], vec![1]))),
        bytes(&zeros.collect::<Vec<_>>()),
        bytes(&prefixed(PREFIX)),
        bytes(&prefixed("net.")),
    ];
    for source in cases {
        safetensors::SafeTensors::deserialize(&source).expect("the reference reads it");
        for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
            let place = Place::named("模型 ünï 'q' 🙂.safetensors", &source);
            let options = Options {
                header,
                cast: Cast::ToBf16,
                ..Options::default()
            };
            let report = place.compress(options).unwrap();
            let options = CheckOptions {
                against: Some(place.file()),
                ..CheckOptions::default()
            };
            let result = Path::new(&report.target);
            check::start(result, options).unwrap().result().unwrap();
            if header == HeaderMode::Official {
                continue;
            }
            let back = place.path("zurück 日本.safetensors");
            let task = restore::start(result, Some(&back), RestoreOptions::default());
            task.unwrap().result().unwrap();
            assert!(fs::read(back).unwrap() == source, "it comes back");
        }
    }
}
