//! The exact sizes of a unit's six tensors, known before a single weight is encoded.

use crate::limits::{CHUNK_BITS, CHUNK_BYTES, GAP_BYTES_PER_CHUNK};

/// Sizes of one unit's tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitLayout {
    /// Weights in the unit, N; also the bytes of `sign_mantissa`.
    pub weights: u64,
    /// Bits of all codes, without EOF.
    pub bits: u64,
    /// Rows of `luts` (tables + 1), each 256 bytes.
    pub lut_rows: u64,
    /// Bytes of `encoded_exponent`, B.
    pub encoded_exponent_bytes: u64,
    /// Kernel chunks, K = ceil(B / 4096).
    pub chunks: u64,
    /// Bytes of `gaps`, 320 K.
    pub gaps_bytes: u64,
    /// Entries (u32) of `output_positions`: K + 1, or K when the last chunk holds only the end of the last code, byte-aligned.
    pub position_entries: u64,
}

impl UnitLayout {
    /// The layout of `weights` codes of together `bits` bits, the last of them `last_code_bits` long.
    pub fn new(weights: u64, bits: u64, last_code_bits: u32, lut_rows: u64) -> Self {
        let encoded_exponent_bytes = bits.div_ceil(8);
        let chunks = encoded_exponent_bytes.div_ceil(CHUNK_BYTES);
        // Only a code, or the EOF of an unaligned tail, opens an entry. In the last chunk there may be neither.
        let in_last_chunk = bits % CHUNK_BITS;
        let last_chunk_unopened = bits.is_multiple_of(8)
            && 0 < in_last_chunk
            && in_last_chunk < u64::from(last_code_bits);
        Self {
            weights,
            bits,
            lut_rows,
            encoded_exponent_bytes,
            chunks,
            gaps_bytes: GAP_BYTES_PER_CHUNK * chunks,
            position_entries: chunks + u64::from(!last_chunk_unopened),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_around_the_chunk_border() {
        // bits, length of the last code -> B, K, entries
        for (bits, last, bytes, chunks, entries) in [
            (1, 1, 1, 1, 2),
            (8, 8, 1, 1, 2),
            (CHUNK_BITS, 3, 4096, 1, 2),
            (CHUNK_BITS + 8, 8, 4097, 2, 3),
            (CHUNK_BITS + 8, 9, 4097, 2, 2),
            (CHUNK_BITS + 9, 10, 4098, 2, 3),
            (CHUNK_BITS + 24, 32, 4099, 2, 2),
            (2 * CHUNK_BITS + 16, 17, 8194, 3, 3),
            (2 * CHUNK_BITS - 8, 32, 8191, 2, 3),
        ] {
            let layout = UnitLayout::new(7, bits, last, 2);
            let found = (
                layout.encoded_exponent_bytes,
                layout.chunks,
                layout.position_entries,
            );
            assert_eq!(
                found,
                (bytes, chunks, entries),
                "{bits} bits, last code {last}"
            );
            assert_eq!(layout.gaps_bytes, 320 * chunks);
        }
    }
}
