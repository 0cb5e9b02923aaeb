//! One tensor written piece by piece: interior bytes by the workers at once, shared border bytes and the hash in order.

use df11_codec::BitRun;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::Output;
use crate::error::Result;

/// A tensor of the result that was written and, where that is asked for, verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Their xxh3.
    pub hash: u64,
}

/// A tensor that grows in order.
pub struct TensorStream {
    offset: u64,
    hasher: Xxh3,
    /// The last byte so far, while the next piece may still add bits to it.
    pending: Option<u8>,
    /// Whole bytes so far.
    bytes: u64,
}

impl TensorStream {
    /// A tensor whose first byte lies at `offset` in the file.
    pub fn new(offset: u64) -> Self {
        Self {
            offset,
            hasher: Xxh3::new(),
            pending: None,
            bytes: 0,
        }
    }

    /// Writes the bytes of `run` that belong to it alone, for a tensor at `offset`. Any thread may do so, in any order.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_interior(file: &Output, offset: u64, run: &BitRun) -> Result<()> {
        let (first, interior) = interior(run);
        file.write(interior, offset + first)
    }

    /// Takes the next piece in order: hashes it, and writes the border bytes that have become complete.
    ///
    /// # Errors
    /// Those of the file.
    pub fn append(&mut self, file: &Output, run: &BitRun) -> Result<()> {
        let end_bit = run.first_bit + run.bit_len;
        let mut bytes = run.bytes.as_slice();
        if let (Some(pending), [head, rest @ ..]) = (self.pending, bytes) {
            let joined = pending | head;
            if end_bit / 8 == self.bytes {
                self.pending = Some(joined);
                return Ok(());
            }
            self.finish_byte(file, joined)?;
            bytes = rest;
        }
        if !end_bit.is_multiple_of(8)
            && let [body @ .., last] = bytes
        {
            self.pending = Some(*last);
            bytes = body;
        }
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Takes bytes that were written already, or that end the tensor.
    pub fn append_bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Writes the last byte as far as it is known, so that what is complete can be read back.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&self, file: &Output) -> Result<()> {
        match self.pending {
            Some(byte) => file.write(&[byte], self.offset + self.bytes),
            None => Ok(()),
        }
    }

    /// Ends the tensor: where it lies, and its xxh3.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self, file: &Output) -> Result<Region> {
        if let Some(pending) = self.pending {
            self.finish_byte(file, pending)?;
        }
        Ok(Region {
            offset: self.offset,
            bytes: self.bytes,
            hash: self.hasher.digest(),
        })
    }

    fn finish_byte(&mut self, file: &Output, byte: u8) -> Result<()> {
        file.write(&[byte], self.offset + self.bytes)?;
        self.append_bytes(&[byte]);
        self.pending = None;
        Ok(())
    }
}

/// The bytes of a run that no neighbour shares, and the offset of the first in the tensor.
fn interior(run: &BitRun) -> (u64, &[u8]) {
    let end_bit = run.first_bit + run.bit_len;
    let first = run.first_bit.div_ceil(8);
    let skipped = (first - run.first_bit / 8) as usize;
    let length = (end_bit / 8).saturating_sub(first) as usize;
    (first, &run.bytes[skipped.min(run.bytes.len())..][..length])
}
