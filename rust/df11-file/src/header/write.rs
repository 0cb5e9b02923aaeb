//! Writes a header as the safetensors crate does: compact JSON in file order, padded with spaces to 8 bytes.

use std::cmp::Ordering;

use safetensors::Dtype;

use crate::error::{Code, Error, Result};

/// A tensor to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The official order: dtype rank descending, then name bytewise.
pub fn official_order(a: &TensorEntry, b: &TensorEntry) -> Ordering {
    b.dtype
        .cmp(&a.dtype)
        .then_with(|| a.name.as_bytes().cmp(b.name.as_bytes()))
}

/// The header of `tensors`, lying one behind the other in this order: 8 length bytes and JSON, padded to a multiple of 8 bytes and to
/// at least `min_bytes` (trailing spaces are legal).
pub fn serialize(
    tensors: &[TensorEntry],
    metadata: &[(String, String)],
    min_bytes: u64,
) -> Vec<u8> {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let pairs = metadata
        .iter()
        .map(|(key, value)| format!("{}:{}", quote(key), quote(value)));
    let pairs: Vec<_> = pairs.collect();
    let mut members = Vec::with_capacity(tensors.len() + 1);
    if !pairs.is_empty() {
        members.push(format!("\"__metadata__\":{{{}}}", pairs.join(",")));
    }
    let mut offset = 0;
    for tensor in tensors {
        let shape: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
        let end = offset + tensor.bytes;
        members.push(format!(
            "{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{offset},{end}]}}",
            quote(&tensor.name),
            tensor.dtype,
            shape.join(",")
        ));
        offset = end;
    }
    let json = format!("{{{}}}", members.join(","));
    let length = (json.len() as u64)
        .next_multiple_of(8)
        .max(min_bytes.saturating_sub(8));
    let mut bytes = Vec::with_capacity(8 + length as usize);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(json.as_bytes());
    bytes.resize(8 + length as usize, b' ');
    bytes
}

/// Asks the safetensors crate, the format's reference, whether it accepts a header (with its 8 length bytes) over `data_bytes` of data.
///
/// # Errors
/// `E_INTERNAL` where it does not.
pub fn check_with_reference(header: &[u8], data_bytes: u64) -> Result<()> {
    let fault = |what: String| {
        Error::new(
            Code::Internal,
            format!("the safetensors library refuses the new header: {what}"),
        )
    };
    let metadata: safetensors::tensor::Metadata =
        serde_json::from_slice(&header[8..]).map_err(|error| fault(error.to_string()))?;
    let described = metadata.data_len() as u64;
    if described != data_bytes {
        return Err(fault(format!(
            "it sees {described} bytes of data, {data_bytes} were written"
        )));
    }
    Ok(())
}
