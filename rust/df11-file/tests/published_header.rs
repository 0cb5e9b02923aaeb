//! The header writer against a published file: the same tensors give the same header, to the byte.

use std::collections::HashMap;

use df11_file::header::{self, Dtype, TensorEntry};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// `tests/data/real_headers/README.md` has the layout.
const QWEN_IMAGE21: &str = include_str!("../../../tests/data/real_headers/qwen-image21.json");

#[derive(Deserialize)]
struct Fixture {
    release: Release,
}

#[derive(Deserialize)]
struct Release {
    metadata: Option<HashMap<String, String>>,
    count: usize,
    /// Names, dtype, shape; a side of `None` is a length that only the encoder knows.
    tensors: Vec<(String, Dtype, Vec<Option<u64>>)>,
    /// By unit: bytes of bitstream, rows of tables.
    encoded: HashMap<String, (u64, u64)>,
}

impl Release {
    fn entries(&self) -> Vec<TensorEntry> {
        let mut entries = Vec::new();
        for (names, dtype, sides) in &self.tensors {
            for name in expand(names) {
                let shape: Vec<_> = sides
                    .iter()
                    .map(|side| side.unwrap_or_else(|| self.encoded_length(&name)))
                    .collect();
                let bytes = shape.iter().product::<u64>() * dtype.bitsize() as u64 / 8;
                let dtype = *dtype;
                entries.push(TensorEntry {
                    name,
                    dtype,
                    shape,
                    bytes,
                });
            }
        }
        entries
    }

    fn encoded_length(&self, name: &str) -> u64 {
        let (unit, field) = name.rsplit_once('.').expect("a field of a unit");
        let (stream, rows) = self.encoded[unit];
        let chunks = stream.div_ceil(4096);
        match field {
            "luts" => rows,
            "gaps" => 320 * chunks,
            "output_positions" => 4 * (chunks + 1),
            _ => stream,
        }
    }
}

/// `a.{0-31}.b` stands for 32 names. This fixture has no other kind of braces.
fn expand(names: &str) -> Vec<String> {
    let parts: Vec<_> = names.split(['{', '-', '}']).collect();
    let [before, first, last, after] = parts[..] else {
        return vec![names.to_owned()];
    };
    let number = |text: &str| text.parse::<u32>().expect("a number");
    (number(first)..=number(last))
        .map(|number| format!("{before}{number}{after}"))
        .collect()
}

#[test]
fn header_of_a_published_file_is_written_to_the_byte() {
    let Fixture { release } = serde_json::from_str(QWEN_IMAGE21).unwrap();
    assert!(release.metadata.is_none());
    let mut tensors = release.entries();
    assert_eq!(tensors.len(), release.count);
    tensors.sort_by(header::official_order);
    let written = header::serialize(&tensors, &[], 0);
    let (length, json) = written.split_at(8);
    assert_eq!(length, 28_408_u64.to_le_bytes());
    // Another project pins this digest for the published file's header, without its 8 length bytes.
    let pinned = "fa5b70707d9d5e08d1c92e40dcdeedd64f72508f88ca942217c6fd419ff5ba5e";
    let digest = Sha256::digest(json)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    assert_eq!(digest, pinned);
    let data: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
    let size = written.len() as u64 + data;
    assert_eq!(size, 9_724_491_411, "the published file has another size");
}
