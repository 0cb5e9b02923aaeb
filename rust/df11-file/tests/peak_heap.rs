//! No file makes the program take much more memory than the file is large: 32 MiB and four times its size.
#![allow(missing_docs, unsafe_code, clippy::expect_used, clippy::unwrap_used)]

mod counting;
#[path = "../../fuzz/src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../fuzz/src/stored.rs"]
#[allow(dead_code)]
mod stored;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use counting::{Counting, HELD, PEAK};
use flate2::{Compression, write::ZlibEncoder};
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FREE_BYTES: u64 = 32 << 20;
const PER_BYTE: u64 = 4;

/// Does all with the file that may be done with a file from anywhere, and compares the memory that it takes.
fn measure(what: &str, file: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.safetensors");
    fs::write(&path, file).unwrap();
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    stored::look(&path);
    let peak = PEAK.load(Relaxed) - before;
    let most = FREE_BYTES + PER_BYTE * file.len() as u64;
    assert!(
        peak <= most,
        "{what}: {peak} bytes for a file of {}",
        file.len()
    );
}

fn with_length(json: &str) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat()
}

/// Headers of about `bytes` of one kind of thing, again and again.
fn hostile_headers(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let tensor = r#"{"dtype":"U8","shape":[],"data_offsets":[0,1]}"#;
    let empty = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    let many = |member: &dyn Fn(usize) -> String| {
        let (mut json, mut index) = (String::from("{"), 0);
        while json.len() < bytes {
            json.push_str(&member(index));
            json.push(',');
            index += 1;
        }
        json.pop();
        with_length(&format!("{json}}}"))
    };
    let nested = |open: &str, close: &str| {
        let depth = bytes / 2;
        with_length(&format!(
            r#"{{"a":{}{}}}"#,
            open.repeat(depth),
            close.repeat(depth)
        ))
    };
    let metadata = |entry: &dyn Fn(usize) -> String| {
        let inner = many(entry);
        let inner = std::str::from_utf8(&inner[8..]).unwrap();
        with_length(&format!(r#"{{"__metadata__":{inner}}}"#))
    };
    let numbers = |numbers: &str| {
        with_length(&format!(
            r#"{{"a":{{"dtype":"U8","shape":[{numbers}1],"data_offsets":[0,0]}}}}"#
        ))
    };
    vec![
        ("tensors", many(&|index| format!(r#""{index}":{empty}"#))),
        (
            "tensors at one place",
            many(&|index| format!(r#""{index}":{tensor}"#)),
        ),
        (
            "a name again and again",
            many(&|_| format!(r#""a":{empty}"#)),
        ),
        ("sides", numbers(&"1,".repeat(bytes / 2))),
        (
            "large sides",
            numbers(&"18446744073709551615,".repeat(bytes / 21)),
        ),
        (
            "a long name",
            with_length(&format!(r#"{{"{}":{empty}}}"#, "n".repeat(bytes))),
        ),
        (
            "escapes",
            with_length(&format!(r#"{{"{}":{empty}}}"#, r"\u0001".repeat(bytes / 6))),
        ),
        (
            "a long dtype",
            with_length(&format!(
                r#"{{"a":{{"dtype":"{}","shape":[0],"data_offsets":[0,0]}}}}"#,
                "U".repeat(bytes)
            )),
        ),
        ("metadata", metadata(&|index| format!(r#""{index}":"""#))),
        (
            "a metadata key again and again",
            metadata(&|_| r#""":"""#.to_owned()),
        ),
        (
            "metadata twice",
            many(&|_| r#""__metadata__":{}"#.to_owned()),
        ),
        ("arrays in arrays", nested("[", "]")),
        ("objects in objects", nested(r#"{"":"#, "}")),
        ("spaces", with_length(&format!("{{{}}}", " ".repeat(bytes)))),
        (
            "parts of units",
            many(&|index| format!(r#""{index}.luts":{empty}"#)),
        ),
        (
            "units without their other parts",
            many(&|index| format!(r#""{index}.sign_mantissa":{empty}"#)),
        ),
        (
            "units that lack weights",
            many(&|index| format!(r#""double_blocks.{index}.img_attn.qkv.weight":{empty}"#)),
        ),
        (
            "names that become one",
            many(&|index| format!(r#""{index}_norm.scale":{empty},"{index}_norm.weight":{empty}"#)),
        ),
    ]
}

fn pack(bytes: &[u8]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    BASE64.encode(encoder.finish().unwrap())
}

/// A file whose description unpacks to other texts.
fn described(names: &[u8], source_header: &[u8], dropped: &[u8], data_bytes: u64) -> Vec<u8> {
    let sound = &stored::sound()[0];
    let length = u64::from_le_bytes(*sound.first_chunk().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&sound[8..8 + length]).unwrap();
    let metadata = &mut header["__metadata__"];
    let mut stamp: serde_json::Value =
        serde_json::from_str(metadata["df11.stamp"].as_str().unwrap()).unwrap();
    stamp["names_xxh3"] = format!("{:016x}", xxh3_64(names)).into();
    stamp["header_xxh3"] = format!("{:016x}", xxh3_64(source_header)).into();
    stamp["bytes"] = (8 + source_header.len() as u64 + data_bytes).into();
    metadata["df11.stamp"] = stamp.to_string().into();
    metadata["df11.names"] = pack(names).into();
    metadata["df11.source_header"] = pack(source_header).into();
    metadata["df11.dropped"] = pack(dropped).into();
    let header = header.to_string();
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        &sound[8 + length..],
    ]
    .concat()
}

fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let entries = fs::read_dir(folder.join(target)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// One test, since whatever runs beside it would be counted.
#[test]
fn no_file_takes_much_more_memory_than_its_size() {
    for path in seeds("stored") {
        let seed = fs::read(&path).unwrap();
        measure(&path.display().to_string(), &stored::file_of(&seed));
    }
    for path in seeds("header") {
        let seed = fs::read(&path).unwrap();
        let mut input = input::Input(&seed);
        let data_bytes = input.number().min(1 << 20) as usize;
        let json = String::from_utf8_lossy(input.0).into_owned();
        let mut file = with_length(&json);
        file.resize(file.len() + data_bytes, 0);
        measure(&path.display().to_string(), &file);
    }
    for bytes in [300, 1 << 20, 8 << 20] {
        for (what, mut file) in hostile_headers(bytes) {
            measure(&format!("{what}, {bytes}"), &file);
            file.push(0);
            measure(&format!("{what}, {bytes}, and a byte"), &file);
        }
    }
    // 90 MB in 90 KB, or what is just allowed.
    for bytes in [90_000_000, 2 << 20] {
        let text = |start: &str, again: &str, end: &str| {
            let middle = again.repeat((bytes - start.len() - end.len()) / again.len());
            format!("{start}{middle}{end}").into_bytes()
        };
        let header = |at: usize| {
            let empty = format!(
                r#""{at:x}":{{"dtype":"U8","shape":[],"data_offsets":[{at},{}]}},"#,
                at + 1
            );
            empty
        };
        let mut tensors = String::from("{");
        let mut count = 0;
        while tensors.len() < bytes.min(2 << 20) - 100 {
            tensors.push_str(&header(count));
            count += 1;
        }
        tensors.pop();
        tensors.push('}');
        let sides = text(
            r#"{"a":{"dtype":"U8","shape":["#,
            "0,",
            r#"0],"data_offsets":[0,0]}}"#,
        );
        let units = text(
            r#"{"units":[["",[["",""]"#,
            r#",["",""]"#,
            r#"]]],"passthrough":[],"dropped":[]}"#,
        );
        let dropped = text(
            r#"{"units":[],"passthrough":[],"dropped":[""#,
            r#"","#,
            r#""]}"#,
        );
        let spaces = text("{", " ", "}");
        for names in [&units, &dropped, &spaces] {
            for source_header in [tensors.as_bytes(), &sides, &spaces] {
                let file = described(names, source_header, &vec![0; bytes], count as u64);
                measure(&format!("a description of {bytes} bytes"), &file);
            }
        }
    }
}
