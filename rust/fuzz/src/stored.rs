//! A damaged DF11 file, or any bytes, is checked, restored, and planned without a panic, and what these say of it fits together.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use df11_file::{
    Code, Error, Job, Options, Result,
    check::{self, CheckOptions, Level},
    options::HeaderMode,
    plan,
    restore::{self, RestoreOptions},
};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::input::Input;

const ARCHITECTURE: &str = r#"
schema = 1
id = "Toy"
name = "a toy"
source = "made up for tests"
[loader]
node = "ToyLoader"
pack = "toys"
url = "https://example.org"
[detect]
all = ["norm"]
[keys]
drop = ['^junk\.']
[shapes]
rules = [{ pattern = '.', side = "out", key = "norm", axis = 0, factor = 1 }]
[[units]]
pattern = 'two\.\d+'
attributes = ["a", "b"]
[[units]]
pattern = 'one\.\d+'
attributes = []
"#;

/// Beginnings of the names of its units' tensors.
const UNITS: [&str; 2] = ["two.0.", "one.0."];

pub fn run(data: &[u8]) {
    let folder = folder();
    let path = folder.path().join("file.safetensors");
    fs::write(&path, file_of(data)).expect("room");
    look(&path);
}

/// The file that a target's bytes stand for.
pub fn file_of(data: &[u8]) -> Vec<u8> {
    let mut input = Input(data);
    match input.byte() % 8 {
        0 => input.0.to_vec(),
        kind => damaged(&sound()[usize::from(kind % 2)], &mut input),
    }
}

/// Does everything with a file that may be done with a file from anywhere.
pub fn look(path: &Path) {
    let folder = path.parent().expect("a folder");
    fs::write(folder.join("toy.toml"), ARCHITECTURE).expect("room");
    let _ = said(plan(path, None, options(folder)));

    let checked = [Level::Structure, Level::Hash, Level::Sample, Level::Full].map(|level| {
        let options = CheckOptions {
            level,
            samples: 1,
            seed: Some(1),
            threads: Some(1),
            ..CheckOptions::default()
        };
        let started = check::start(path, options);
        said(started.and_then(|task| task.result()))
    });
    let [structure, hash, sample, full] = checked;
    assert!(structure.is_ok() || sample.is_err(), "{structure:?}");
    assert!(sample.is_ok() || full.is_err(), "{sample:?}");
    let no_hashes = |error: &Error| error.code == Code::Option;
    assert!(
        full.is_err() || hash.as_ref().err().is_none_or(no_hashes),
        "{hash:?}"
    );

    let target = folder.join("restored.safetensors");
    let options = RestoreOptions {
        threads: Some(1),
        definitions: vec![folder.to_path_buf()],
        ..RestoreOptions::default()
    };
    let started = restore::start(path, Some(&target), options);
    let restored = said(started.and_then(|task| task.result()));
    assert_eq!(restored.is_ok(), target.exists());
    // A name may be damaged, by which the architecture is known.
    let kept = restored
        .as_ref()
        .err()
        .is_none_or(|error| matches!(error.code, Code::NotRestorable | Code::ArchUnknown));
    assert!(full.is_err() || kept, "{restored:?}");
    if restored.is_ok() {
        judge(path, &target);
    }
}

/// What was restored from a file that does not describe itself is what was compressed, as far as that is not damaged.
fn judge(path: &Path, target: &Path) {
    let (stored, metadata) = parts(&fs::read(path).expect("readable"));
    if metadata.contains_key("df11.format") {
        return;
    }
    let (undamaged, _) = parts(&sound()[1]);
    let of_unit = |tensors: &[Tensor], unit: &str| -> Vec<(String, Vec<u8>)> {
        let of_unit = |tensor: &&Tensor| tensor.name.starts_with(unit);
        let mut found: Vec<_> = tensors
            .iter()
            .filter(of_unit)
            .map(|tensor| (tensor.name.clone(), tensor.bytes.clone()))
            .collect();
        found.sort();
        found
    };
    let (restored, _) = parts(&fs::read(target).expect("readable"));
    for tensor in source() {
        let name = &tensor.name;
        let unit = UNITS.iter().find(|unit| name.starts_with(**unit));
        let unit = unit.map_or(&**name, |unit| unit);
        let before = of_unit(&undamaged, unit);
        if !before.is_empty() && of_unit(&stored, unit) == before {
            let after = restored.iter().find(|after| after.name == *name);
            let is_equal = after.is_some_and(|after| after.bytes == tensor.bytes);
            assert!(is_equal, "{name}");
        }
    }
}

/// A fault that was caught is one all the same.
fn said<T>(outcome: Result<T>) -> Result<T> {
    if let Err(error) = &outcome {
        assert_ne!(error.code, Code::Internal, "{error}");
        assert!(
            !error.message.is_empty() && !error.hint.is_empty(),
            "{error:?}"
        );
    }
    outcome
}

/// In memory, where the system has such a place.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    folder.expect("a folder")
}

fn options(folder: &Path) -> Options {
    Options {
        definitions: vec![folder.to_path_buf()],
        threads: Some(1),
        ..Options::default()
    }
}

/// The model that was compressed.
fn source() -> Vec<Tensor> {
    let mut state = 1_u64;
    let mut bf16 = |name: &str, weights: u64, exponents: u32| Tensor {
        name: name.to_owned(),
        dtype: "BF16".into(),
        shape: vec![weights],
        bytes: (0..weights)
            .flat_map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let random = (state >> 32) as u32;
                let exponent = 120 - random.trailing_zeros().min(exponents) as u16;
                (exponent << 7 | (random >> 16) as u16 & 0x807F).to_le_bytes()
            })
            .collect(),
    };
    vec![
        bf16("two.0.a.weight", 14_000, 30),
        bf16("two.0.b.weight", 70, 30),
        bf16("one.0.weight", 300, 2),
        bf16("norm", 5, 30),
        bf16("junk.state", 3, 30),
    ]
}

/// A sound file with a description, and one without.
pub fn sound() -> &'static [Vec<u8>; 2] {
    static SOUND: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = folder();
        let path = |name: &str| -> PathBuf { folder.path().join(name) };
        fs::write(path("toy.toml"), ARCHITECTURE).expect("room");
        fs::write(path("model.safetensors"), file(&source(), &Map::new())).expect("room");
        [HeaderMode::SelfDescribing, HeaderMode::Official].map(|header| {
            let options = Options {
                header,
                ..options(folder.path())
            };
            let target = path(header.as_str());
            let plan = plan(&path("model.safetensors"), Some(&target), options).expect("a plan");
            Job::start(plan)
                .and_then(|job| job.result())
                .expect("a result");
            fs::read(target).expect("written")
        })
    })
}

struct Tensor {
    name: String,
    dtype: Value,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// The file of these tensors, one behind the other.
fn file(tensors: &[Tensor], metadata: &Map<String, Value>) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    if !metadata.is_empty() {
        header.insert("__metadata__".to_owned(), metadata.clone().into());
    }
    for tensor in tensors {
        let start = data.len();
        data.extend_from_slice(&tensor.bytes);
        let entry = json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, data.len()]});
        header.insert(tensor.name.clone(), entry);
    }
    let header = Value::from(header).to_string();
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        &data,
    ]
    .concat()
}

/// The parts of a sound file.
fn parts(file: &[u8]) -> (Vec<Tensor>, Map<String, Value>) {
    let length = u64::from_le_bytes(*file.first_chunk().expect("sound")) as usize;
    let (header, data) = file[8..].split_at(length);
    let mut header: Map<String, Value> = serde_json::from_slice(header).expect("sound");
    let metadata = header.shift_remove("__metadata__");
    let tensors = header.into_iter().map(|(name, entry)| {
        let number = |value: &Value| value.as_u64().expect("sound");
        let offsets = &entry["data_offsets"];
        let range = number(&offsets[0]) as usize..number(&offsets[1]) as usize;
        Tensor {
            name,
            dtype: entry["dtype"].clone(),
            shape: entry["shape"]
                .as_array()
                .expect("sound")
                .iter()
                .map(number)
                .collect(),
            bytes: data[range].to_vec(),
        }
    });
    let metadata = metadata.and_then(|metadata| metadata.as_object().cloned());
    (tensors.collect(), metadata.unwrap_or_default())
}

/// The file with some damages.
fn damaged(sound: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let (mut tensors, mut metadata) = parts(sound);
    for _ in 0..input.byte() % 4 {
        let kind = input.byte();
        let index = usize::from(input.byte()) % tensors.len();
        let tensor = &mut tensors[index];
        match kind % 8 {
            0..=2 => change(&mut tensor.bytes, input),
            3 => {
                // Rows, entries, bytes.
                let unit = tensor.bytes.len() / tensor.shape[0].max(1) as usize;
                let sides = if kind < 128 {
                    tensor.shape[0].saturating_add_signed(i64::from(input.byte().cast_signed()))
                } else {
                    input.number() % 100_000
                };
                tensor.shape[0] = sides;
                tensor.bytes.resize(sides as usize * unit.max(1), 0);
            }
            4 => {
                tensor.dtype =
                    ["I8", "BOOL", "I64", "BF16", "F8_E4M3"][usize::from(input.byte()) % 5].into();
            }
            5 => {
                let other = usize::from(input.byte()) % tensors.len();
                let name = std::mem::take(&mut tensors[index].name);
                let name = std::mem::replace(&mut tensors[other].name, name);
                if other != index {
                    tensors[index].name = name;
                }
            }
            _ => describe(&mut metadata, input),
        }
    }
    let mut file = file(&tensors, &metadata);
    match input.byte() % 8 {
        0 => change(&mut file, input),
        1 => {
            let length = u64::from_le_bytes(*file.first_chunk().expect("8 bytes")) as usize;
            let mut header = file.drain(8..8 + length).collect();
            change_text(&mut header, input);
            file[..8].copy_from_slice(&(header.len() as u64).to_le_bytes());
            file.splice(8..8, header);
        }
        2 => {
            let length = file
                .len()
                .saturating_add_signed(isize::from(input.byte().cast_signed()));
            file.resize(length, 0);
        }
        _ => {}
    }
    file
}

/// Some byte.
fn change(bytes: &mut [u8], input: &mut Input<'_>) {
    let at = input.u32() as usize;
    if !bytes.is_empty() {
        let length = bytes.len();
        bytes[at % length] ^= input.byte().max(1);
    }
}

/// Some number or some byte.
fn change_text(text: &mut Vec<u8>, input: &mut Input<'_>) {
    if input.byte().is_multiple_of(2) {
        return change(text, input);
    }
    let is_start =
        |&at: &usize| text[at].is_ascii_digit() && (at == 0 || !text[at - 1].is_ascii_digit());
    let starts: Vec<_> = (0..text.len()).filter(is_start).collect();
    let Some(&start) = starts.get(input.u16() as usize % starts.len().max(1)) else {
        return;
    };
    let digits = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = input.number().to_string();
    text.splice(start..start + digits, number.into_bytes());
}

/// Some key of the description; then the stamp's hashes fit again.
fn describe(metadata: &mut Map<String, Value>, input: &mut Input<'_>) {
    const KEYS: [&str; 6] = [
        "names",
        "source_header",
        "dropped",
        "stamp",
        "xxh3",
        "format",
    ];
    let key = usize::from(input.byte()) % KEYS.len();
    let Some(Value::String(text)) = metadata.get_mut(&format!("df11.{}", KEYS[key])) else {
        return;
    };
    if key > 2 {
        let mut bytes = std::mem::take(text).into_bytes();
        change_text(&mut bytes, input);
        *text = String::from_utf8_lossy(&bytes).into_owned();
        return;
    }
    let Some(mut bytes) = unpacked(text) else {
        return;
    };
    change_text(&mut bytes, input);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&bytes).expect("into memory");
    *text = BASE64.encode(encoder.finish().expect("into memory"));
    let hash = ["names_xxh3", "header_xxh3"].get(key);
    let stamp = metadata.get("df11.stamp").and_then(Value::as_str);
    let stamp = stamp.and_then(|stamp| serde_json::from_str::<Map<_, _>>(stamp).ok());
    if let (Some(name), Some(mut stamp)) = (hash, stamp) {
        stamp.insert(
            (*name).to_owned(),
            format!("{:016x}", xxh3_64(&bytes)).into(),
        );
        metadata.insert(
            "df11.stamp".to_owned(),
            Value::from(stamp).to_string().into(),
        );
    }
}

fn unpacked(text: &str) -> Option<Vec<u8>> {
    let packed = BASE64.decode(text).ok()?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}
