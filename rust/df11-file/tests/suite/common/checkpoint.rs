//! Safetensors files with full control of their layout.

use std::{fs, path::Path};

/// A tensor of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub dtype: &'static str,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn new(name: &str, dtype: &'static str, shape: &[u64], bytes: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes,
        }
    }

    /// One-dimensional BF16.
    pub fn bf16(name: &str, bytes: Vec<u8>) -> Self {
        Self::new(name, "BF16", &[bytes.len() as u64 / 2], bytes)
    }

    /// One-dimensional F32.
    pub fn f32(name: &str, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, "F32", &[values.len() as u64], bytes.collect())
    }
}

/// What a file's writer may choose.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub metadata: Vec<(String, String)>,
    /// Data stands in the reverse order of the header.
    pub reversed_data: bool,
    /// Spaces between all JSON tokens, and a header length that is odd, so that no tensor is aligned.
    pub odd: bool,
}

/// The file's bytes: header in the order of `tensors`.
pub fn file_bytes(tensors: &[Tensor], layout: &Layout) -> Vec<u8> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    if layout.reversed_data {
        order.reverse();
    }
    let mut data = Vec::new();
    let mut ranges = vec![(0, 0); tensors.len()];
    for index in order {
        let start = data.len();
        data.extend_from_slice(&tensors[index].bytes);
        ranges[index] = (start, data.len());
    }
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let mut members = Vec::new();
    if !layout.metadata.is_empty() {
        let pairs = layout.metadata.iter();
        let pairs = pairs.map(|(key, value)| format!("{}:{}", quote(key), quote(value)));
        members.push(format!(
            "\"__metadata__\":{{{}}}",
            pairs.collect::<Vec<_>>().join(",")
        ));
    }
    for (tensor, (start, end)) in tensors.iter().zip(ranges) {
        members.push(format!(
            "{}:{{\"dtype\":\"{}\",\"shape\":{:?},\"data_offsets\":[{start},{end}]}}",
            quote(&tensor.name),
            tensor.dtype,
            tensor.shape
        ));
    }
    let separator = if layout.odd { " ,\n\t" } else { "," };
    let mut json = format!("{{{}}}", members.join(separator));
    if layout.odd && json.len() % 2 == 0 {
        json.push(' ');
    }
    with_length(json.as_bytes(), &data)
}

/// A file of a header text and data.
pub fn with_length(json: &[u8], data: &[u8]) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes(), json, data].concat()
}

/// Writes the file.
pub fn write(path: &Path, tensors: &[Tensor], layout: &Layout) {
    fs::write(path, file_bytes(tensors, layout)).unwrap();
}
