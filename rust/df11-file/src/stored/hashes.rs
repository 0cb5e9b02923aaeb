//! Tensors against their hashes: whole ones of a file, and those that come piece by piece.

use super::{Stored, description::Description, units::fault};
use crate::{
    error::{Code, Error, Result},
    hash::Xxh3,
    header::TensorInfo,
    ordered::in_order,
    progress::Progress,
    source::Source,
};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;

/// The tensors of a self-describing file in the order of their data, each with the hash that the file carries for it.
///
/// # Errors
/// `E_STRUCTURE` where it has not one for each.
pub fn in_file_order(stored: &Stored) -> Result<Vec<(&TensorInfo, Option<u64>)>> {
    let tensors = &stored.file.header().tensors;
    let none = || fault("its metadata has not one hash for each tensor");
    let description = stored.description.as_ref().ok_or_else(none)?;
    let hashes = by_tensor(stored, description)?;
    let mut known: Vec<_> = tensors.iter().zip(hashes).collect();
    known.sort_by_key(|(tensor, _)| (tensor.start, tensor.end));
    Ok(known)
}

/// The hash that a self-describing file carries for each of its tensors, in its header's order.
///
/// # Errors
/// `E_STRUCTURE` where it has not one for each.
pub fn by_tensor(stored: &Stored, description: &Description) -> Result<Vec<Option<u64>>> {
    let tensors = &stored.file.header().tensors;
    if description.tensors.len() != tensors.len() {
        return Err(fault("its metadata has not one hash for each tensor"));
    }
    let mut order: Vec<_> = (0..tensors.len()).collect();
    if description.is_folder {
        order.sort_by_key(|&index| tensors[index].name.as_bytes());
    } else {
        order.sort_by_key(|&index| (tensors[index].start, tensors[index].end));
    }
    let mut hashes = vec![None; tensors.len()];
    for (index, hash) in order.into_iter().zip(&description.tensors) {
        hashes[index] = *hash;
    }
    Ok(hashes)
}

/// Hashes tensors of `file`, several at a time.
///
/// # Errors
/// `E_VERIFY` for the first whose bytes are others, or whose hash is not known; those of the file.
pub fn check(
    file: &Source,
    tensors: &[(&TensorInfo, Option<u64>)],
    threads: usize,
    progress: &Progress,
) -> Result<()> {
    in_order(
        tensors.len() as u64,
        threads,
        vec![Vec::new(); threads + 1],
        |index, buffer: &mut Vec<u8>| {
            let (tensor, expected) = tensors[index as usize];
            let mut hasher = Xxh3::new();
            let mut at = tensor.start;
            while at < tensor.end {
                progress.check_cancelled()?;
                buffer.resize(READ_BYTES.min((tensor.end - at) as usize), 0);
                file.read(buffer, at)?;
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

/// Tensors of the source whose bytes come one behind the other.
pub struct TensorHashes<'a> {
    /// Name, bytes to come, hash to be.
    tensors: Vec<(&'a str, u64, Option<u64>)>,
    at: usize,
    hasher: Xxh3,
}

impl<'a> TensorHashes<'a> {
    /// Tensors by name, size in bytes, and hash.
    pub fn new(tensors: Vec<(&'a str, u64, Option<u64>)>) -> Self {
        Self {
            tensors,
            at: 0,
            hasher: Xxh3::new(),
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `E_VERIFY` for a tensor that is complete and has another hash.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while let Some((name, left, expected)) = self.tensors.get_mut(self.at) {
            let length = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
            let (part, more) = rest.split_at(length);
            self.hasher.update(part);
            *left -= part.len() as u64;
            rest = more;
            if *left > 0 {
                return Ok(());
            }
            if Some(self.hasher.digest()) != *expected {
                let message = "its bytes are not those that the source had, by the hash that the file carries";
                return Err(Error::new(Code::Verify, message)
                    .in_tensor(name)
                    .hint("The file is damaged: make it again, or get a sound copy."));
            }
            self.hasher = Xxh3::new();
            self.at += 1;
        }
        Ok(())
    }

    /// Whether all tensors have come. Those without bytes need [`Self::add`] once.
    pub fn are_complete(&self) -> bool {
        self.at == self.tensors.len()
    }
}
