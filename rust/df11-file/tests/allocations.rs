//! A job asks for its memory at its start: what a unit is encoded and checked with goes on to the next one.
#![allow(missing_docs, unsafe_code, clippy::unwrap_used)]

mod counting;

use std::{fs, sync::atomic::Ordering::Relaxed, time::Duration};

use counting::{ASKED, Counting};

use df11_file::{
    Job, Options,
    options::{HeaderMode, Verify},
    plan,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const UNITS: u64 = 40;
/// From the third unit on.
const FROM: u64 = 2;
const MOST_BYTES: u64 = 4096;

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
all = ["unit.0.a.weight"]

[[units]]
pattern = 'unit\.\d+'
attributes = ["a", "b"]
"#;

/// A checkpoint of equal units of two tensors each.
fn source(folder: &tempfile::TempDir, weights: u64) -> Options {
    let mut header = serde_json::Map::new();
    let bytes = weights * 2;
    let names =
        (0..UNITS).flat_map(|unit| ["a", "b"].map(|name| format!("unit.{unit}.{name}.weight")));
    for (name, start) in names.zip((0..).map(|index| index * bytes)) {
        let tensor = serde_json::json!({
            "dtype": "BF16", "shape": [weights], "data_offsets": [start, start + bytes]
        });
        header.insert(name, tensor);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    for _ in 0..UNITS * 2 * weights {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let exponent =
            122 - (state as u16 | 0x8000).trailing_zeros() as u16 - (state >> 16) as u16 % 2;
        file.extend(((state >> 32) as u16 & 0x807F | exponent << 7).to_le_bytes());
    }
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    fs::write(folder.path().join("toy.toml"), ARCHITECTURE).unwrap();
    Options {
        definitions: vec![folder.path().to_path_buf()],
        threads: Some(3),
        ..Options::default()
    }
}

/// Bytes asked for by a unit, on average, from the third one on.
fn bytes_per_unit(options: Options, folder: &tempfile::TempDir) -> u64 {
    let target = folder.path().join("result.safetensors");
    let plan = plan(
        &folder.path().join("model.safetensors"),
        Some(&target),
        options,
    );
    let job = Job::start(plan.unwrap()).unwrap();
    let mut first = None;
    let mut last = (0, 0);
    while !job.join(Some(Duration::from_micros(50))) {
        let (asked, done) = (ASKED.load(Relaxed), job.snapshot().units_done);
        if done >= FROM && first.is_none() {
            first = Some((asked, done));
        }
        // When the last unit is done, the header is next.
        if done < UNITS {
            last = (asked, done);
        }
    }
    job.result().unwrap();
    fs::remove_file(target).unwrap();
    let first = first.unwrap();
    assert!(
        last.1 > first.1 + UNITS / 4,
        "seen from {first:?} to {last:?}"
    );
    (last.0 - first.0) / (last.1 - first.1)
}

#[test]
fn units_hardly_ask_for_memory() {
    let folder = tempfile::tempdir().unwrap();
    for weights in [70_000, 400_000] {
        let options = source(&folder, weights);
        for header in [HeaderMode::SelfDescribing, HeaderMode::Official] {
            for verify in [Verify::Full, Verify::Off] {
                let options = Options {
                    header,
                    verify,
                    ..options.clone()
                };
                let bytes = bytes_per_unit(options, &folder);
                assert!(
                    bytes <= MOST_BYTES,
                    "{bytes} bytes a unit of {weights}, {header:?}, {verify:?}"
                );
            }
        }
    }
}
