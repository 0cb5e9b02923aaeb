//! Whether the target already is what would be written.

use std::fs;

use super::{Restoration, write};
use crate::{
    error::{Code, Result},
    hash::xxh3_64,
    progress::Progress,
    source::Source,
    stored::hashes,
};

/// True where the target has the header that would be written, and each tensor its hash; where hashes are not known, what the file decodes to is compared.
///
/// # Errors
/// `E_CANCELLED`; those of reading the target; `E_TARGET_EXISTS` and those of the file where it is decoded.
pub fn is_result(restoration: &Restoration, progress: &Progress) -> Result<bool> {
    let outline = &restoration.outline;
    let found = Source::open(&restoration.target);
    let Some(found) = found
        .ok()
        .filter(|found| found.header_json() == outline.json)
    else {
        return Ok(false);
    };
    let mut texts = outline.texts.iter().flatten();
    let has = |(name, text): &(String, String)| {
        fs::read(restoration.target.join(name)).is_ok_and(|found| found == text.as_bytes())
    };
    if !texts.all(has) {
        return Ok(false);
    }
    if outline.hashes.is_empty() {
        write::check_units(restoration, progress)?;
        return write::compare(restoration, &found, progress).map(|()| true);
    }
    let mut expected = outline.hashes.clone();
    for (tensor, range) in &outline.parts.kept {
        expected[*tensor] = outline.kept.get(range.clone()).map(xxh3_64);
    }
    let mut tensors: Vec<_> = found.header().tensors.iter().zip(expected).collect();
    tensors.sort_by_key(|(tensor, _)| tensor.start);
    match hashes::check(&found, &tensors, restoration.threads, progress) {
        Ok(()) => Ok(true),
        Err(error) if error.code == Code::Verify => Ok(false),
        Err(error) => Err(error),
    }
}
