//! A self-describing file whose description is changed: the data stays, sizes and the stamp's hashes fit again.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::checkpoint::with_length;

/// The file in memory.
pub struct Forged {
    pub header: Value,
    pub data: Vec<u8>,
}

impl Forged {
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        Self {
            header: serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
            data: bytes[8 + length..].to_vec(),
        }
    }

    pub fn write(&self, path: &Path) {
        let json = self.header.to_string();
        fs::write(path, with_length(json.as_bytes(), &self.data)).unwrap();
    }

    /// The value of a metadata key, without `df11.`.
    pub fn meta(&mut self, key: &str) -> &mut Value {
        &mut self.header["__metadata__"][format!("df11.{key}")]
    }

    /// Sets a metadata key.
    pub fn set(&mut self, key: &str, text: &str) {
        *self.meta(key) = text.into();
    }

    /// Takes a metadata key away.
    pub fn remove(&mut self, key: &str) {
        let metadata = self.header["__metadata__"].as_object_mut().unwrap();
        metadata.remove(&format!("df11.{key}")).unwrap();
    }

    /// What a metadata key packs.
    pub fn unpacked(&mut self, key: &str) -> Vec<u8> {
        let packed = STANDARD.decode(self.meta(key).as_str().unwrap()).unwrap();
        let mut bytes = Vec::new();
        let mut decoder = ZlibDecoder::new(packed.as_slice());
        decoder.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Packs bytes under a metadata key.
    pub fn pack(&mut self, key: &str, bytes: &[u8]) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        let text = STANDARD.encode(encoder.finish().unwrap());
        self.set(key, &text);
    }

    /// Changes the JSON under a metadata key.
    pub fn json(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_str(self.meta(key).as_str().unwrap()).unwrap();
        change(&mut value);
        self.set(key, &value.to_string());
    }

    /// Changes the name map.
    pub fn names(&mut self, change: impl FnOnce(&mut Value)) {
        let mut names = serde_json::from_slice(&self.unpacked("names")).unwrap();
        change(&mut names);
        let text = names.to_string();
        self.pack("names", text.as_bytes());
        let hash = format!("{:016x}", xxh3_64(text.as_bytes()));
        self.json("stamp", |stamp| stamp["names_xxh3"] = hash.into());
    }

    /// Changes the text of the source's header; the source's size follows.
    pub fn source_header(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.unpacked("source_header");
        let mut header = serde_json::from_slice(&before).unwrap();
        change(&mut header);
        let text = header.to_string();
        self.pack("source_header", text.as_bytes());
        let tensors = header.as_object().unwrap().iter();
        let ends = tensors.filter_map(|(_, tensor)| tensor["data_offsets"][1].as_u64());
        let bytes = 8 + text.len() as u64 + ends.max().unwrap_or(0);
        let hash = format!("{:016x}", xxh3_64(text.as_bytes()));
        self.json("stamp", |stamp| {
            stamp["header_xxh3"] = hash.into();
            stamp["bytes"] = bytes.into();
        });
    }
}
