//! Whether the target already is the source.

use xxhash_rust::xxh3::xxh3_64;

use super::Restoration;
use crate::{
    error::{Code, Result},
    progress::Progress,
    source::Source,
    stored::hashes,
};

/// True where the target has the source's header, and each tensor its hash.
///
/// # Errors
/// `E_CANCELLED`; those of reading the target.
pub fn is_result(restoration: &Restoration, progress: &Progress) -> Result<bool> {
    let description = &restoration.description;
    let found = Source::open(&restoration.target);
    let Some(found) = found
        .ok()
        .filter(|found| found.header_json() == description.header_json)
    else {
        return Ok(false);
    };
    let mut expected = description.source.clone();
    let bytes = description.dropped.as_deref().unwrap_or_default();
    for (tensor, range) in &restoration.parts.kept {
        expected[*tensor] = bytes.get(range.clone()).map(xxh3_64);
    }
    let mut tensors: Vec<_> = found.header().tensors.iter().zip(expected).collect();
    tensors.sort_by_key(|(tensor, _)| tensor.start);
    match hashes::check(&found, &tensors, restoration.threads, progress) {
        Ok(()) => Ok(true),
        Err(error) if error.code == Code::Verify => Ok(false),
        Err(error) => Err(error),
    }
}
