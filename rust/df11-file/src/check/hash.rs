//! Every tensor against the hash that the file carries for it.

use xxhash_rust::xxh3::Xxh3;

use super::ordered::in_order;
use crate::{
    error::{Code, Error, Result},
    progress::Progress,
    stored::{Stored, units::fault},
};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;

/// Hashes all tensors, several at a time.
///
/// # Errors
/// `E_VERIFY` for the first tensor, by the order of the data, whose bytes are others.
pub fn check(stored: &Stored, threads: usize, progress: &Progress) -> Result<()> {
    let mut tensors: Vec<_> = stored.file.header().tensors.iter().collect();
    tensors.sort_by_key(|tensor| (tensor.start, tensor.end));
    let expected = stored
        .description
        .as_ref()
        .map_or(&[][..], |description| &description.tensors);
    if expected.len() != tensors.len() {
        return Err(fault("its metadata has not one hash for each tensor"));
    }
    in_order(
        tensors.len() as u64,
        threads,
        vec![Vec::new(); threads + 1],
        |index, buffer: &mut Vec<u8>| {
            let (tensor, expected) = (tensors[index as usize], expected[index as usize]);
            let mut hasher = Xxh3::new();
            let mut at = tensor.start;
            while at < tensor.end {
                progress.check_cancelled()?;
                buffer.resize(READ_BYTES.min((tensor.end - at) as usize), 0);
                stored.file.read(buffer, at)?;
                hasher.update(buffer);
                at += buffer.len() as u64;
                progress.add_stage(buffer.len() as u64);
            }
            if expected == Some(hasher.digest()) {
                return Ok(());
            }
            let error = Error::new(Code::Verify, "its bytes are not those that were written");
            Err(error
                .in_tensor(&tensor.name)
                .hint("The file was changed or damaged: make it again, or get a sound copy."))
        },
        |_, _| Ok(()),
    )
}
