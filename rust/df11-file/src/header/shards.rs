//! Several files as one: their headers merged, and the text that tells them apart again.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Header, parse};
use crate::error::{Code, Error, Result};

/// One of several files that hold a model, as text: an entry of the list that stands for their common header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardText {
    /// Its name.
    pub name: String,
    /// Bytes of its data.
    pub data_bytes: u64,
    /// Its header's JSON text.
    pub header: String,
}

/// The headers of files, by name, as one: their data stands one behind the other. Of metadata with the same key the first counts.
///
/// # Errors
/// `E_INDEX` where two files hold a tensor of one name.
pub fn merge(headers: Vec<(&str, Header)>) -> Result<Header> {
    let mut merged = Header {
        tensors: Vec::new(),
        metadata: Vec::new(),
        data_bytes: 0,
    };
    // Where each file's tensors end.
    let mut ends = Vec::with_capacity(headers.len());
    let mut keys = HashSet::new();
    for (name, header) in headers {
        let start = merged.data_bytes;
        merged.data_bytes += header.data_bytes;
        merged
            .tensors
            .extend(header.tensors.into_iter().map(|mut tensor| {
                tensor.start += start;
                tensor.end += start;
                tensor
            }));
        let metadata = header.metadata.into_iter();
        merged
            .metadata
            .extend(metadata.filter(|(key, _)| keys.insert(key.clone())));
        ends.push((merged.tensors.len(), name));
    }
    let file_of = |index: usize| ends[ends.partition_point(|(end, _)| *end <= index)].1;
    let mut first = HashMap::with_capacity(merged.tensors.len());
    for (index, tensor) in merged.tensors.iter().enumerate() {
        if let Some(other) = first.insert(tensor.name.as_str(), index) {
            let message = format!(
                "two files hold it: {} and {}",
                file_of(other),
                file_of(index)
            );
            return Err(Error::new(Code::Index, message)
                .in_tensor(&tensor.name)
                .hint("Remove the file that does not belong to the model."));
        }
    }
    Ok(merged)
}

/// The text that stands for the common header of files: name, header text, bytes of data.
pub fn text(shards: &[ShardText]) -> Vec<u8> {
    serde_json::to_vec(shards).unwrap_or_default()
}

/// The header that a text stands for, that of a file or of several, which have `bytes` in all; and the files where these are several.
///
/// # Errors
/// `E_HEADER` and its like, as [`parse`]; `E_INDEX`.
pub fn parse_text(text: &[u8], bytes: u64) -> Result<(Header, Vec<ShardText>)> {
    let fault = |message: &str| Error::new(Code::Header, message);
    let short = || fault("the files are shorter than their headers");
    let before_data = |header: usize| 8 + header as u64;
    if text.first() != Some(&b'[') {
        let data_bytes = bytes.checked_sub(before_data(text.len()));
        return Ok((parse(text, data_bytes.ok_or_else(short)?)?, Vec::new()));
    }
    let shards: Vec<ShardText> = serde_json::from_slice(text)
        .map_err(|error| fault(&format!("the list of headers is not valid: {error}")))?;
    let (mut headers, mut rest) = (Vec::with_capacity(shards.len()), bytes);
    for shard in &shards {
        headers.push((
            shard.name.as_str(),
            parse(shard.header.as_bytes(), shard.data_bytes)?,
        ));
        let size = shard
            .data_bytes
            .checked_add(before_data(shard.header.len()));
        let left = size.and_then(|size| rest.checked_sub(size));
        rest = left.ok_or_else(short)?;
    }
    if rest > 0 {
        return Err(fault("the files are longer than their headers say"));
    }
    Ok((merge(headers)?, shards))
}
