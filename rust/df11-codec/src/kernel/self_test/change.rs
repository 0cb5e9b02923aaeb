//! A changed bit in what a check reads.

use crate::{
    encode::EncodedPiece,
    limits::{CHUNK_BYTES, GAP_BYTES_PER_CHUNK},
};

/// Slices that a check reads beside the source.
pub const SLICES: usize = 4;

/// A bit of a whole unit's slice, to be changed.
pub struct Change {
    slice: usize,
    byte: usize,
    bit: usize,
    /// The first chunk that is not equal then.
    pub chunk: usize,
}

impl Change {
    /// Near the beginning, in the middle or near the end of a slice, by turns.
    pub fn new(unit: &EncodedPiece, slice: usize, part: usize) -> Self {
        let eighth = [1, 4, 6][part % 3];
        let at = |bytes: &[u8]| bytes.len() * eighth / 8;
        let (byte, chunk) = match slice {
            0 => {
                let byte = at(&unit.encoded_exponent.bytes);
                (byte, byte / CHUNK_BYTES as usize)
            }
            1 => {
                let byte = at(&unit.gaps.bytes);
                (byte, byte / GAP_BYTES_PER_CHUNK as usize)
            }
            2 => {
                // But for the last one: that of N. Each is also where the chunk before ends.
                let byte = at(&unit.output_positions[4..]);
                (byte, (byte / 4).saturating_sub(1))
            }
            _ => {
                let byte = at(&unit.sign_mantissa);
                (byte, chunk_of(unit, byte))
            }
        };
        Self {
            slice,
            byte,
            bit: eighth,
            chunk,
        }
    }

    /// Makes the change, or takes it back.
    pub fn flip(&self, unit: &mut EncodedPiece) {
        let slice = match self.slice {
            0 => &mut unit.encoded_exponent.bytes,
            1 => &mut unit.gaps.bytes,
            2 => &mut unit.output_positions,
            _ => &mut unit.sign_mantissa,
        };
        if let Some(byte) = slice.get_mut(self.byte) {
            *byte ^= 1 << self.bit;
        }
    }
}

/// The chunk in which a weight starts.
fn chunk_of(unit: &EncodedPiece, weight: usize) -> usize {
    let entries = unit.output_positions.chunks_exact(4);
    let begun = entries.take_while(|entry| {
        let first = entry.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
        first <= weight
    });
    begun.count().saturating_sub(1)
}
