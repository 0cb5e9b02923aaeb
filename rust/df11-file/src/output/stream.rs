//! One tensor that is made piece by piece: two that share a byte are joined, and all are hashed.

use df11_codec::BitRun;
use serde::{Deserialize, Serialize};

use crate::hash::Xxh3;

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

    /// Takes the next piece in order: gives its first byte the bits that the one before has in it, and hashes what is complete.
    pub fn append(&mut self, run: &mut BitRun) {
        let whole = (run.first_bit + run.bit_len) / 8 - run.first_bit / 8;
        let Some(first) = run.bytes.first_mut() else {
            return;
        };
        *first |= self.pending.unwrap_or(0);
        let (complete, rest) = run.bytes.split_at(whole as usize);
        self.pending = rest.first().copied();
        self.append_bytes(complete);
    }

    /// Takes the bytes that come next.
    pub fn append_bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Ends the tensor: where it lies, and its xxh3.
    pub fn finish(mut self) -> Region {
        if let Some(pending) = self.pending.take() {
            self.append_bytes(&[pending]);
        }
        Region {
            offset: self.offset,
            bytes: self.bytes,
            hash: self.hasher.digest(),
        }
    }
}
