//! Reading bits, most significant first. Bytes past the end read as 0, as in the decode kernel.

use crate::limits::GAP_BITS;

/// The 12 bytes from byte `at` that a GPU thread loads: its window and the 32 bits behind it.
#[inline]
pub fn window_at(bytes: &[u8], at: usize) -> (u64, u32) {
    let tail = bytes.get(at..).unwrap_or_default();
    let mut padded = [0; 12];
    let loaded = tail.first_chunk().unwrap_or_else(|| {
        padded[..tail.len()].copy_from_slice(tail);
        &padded
    });
    let word = loaded
        .iter()
        .fold(0u128, |word, &byte| word << 8 | u128::from(byte));
    ((word >> 32) as u64, word as u32)
}

/// Gap number `index` of a packed `gaps` slice.
#[inline]
pub fn gap_at(packed: &[u8], index: usize) -> u8 {
    let bit = index * GAP_BITS as usize;
    let byte = |at: usize| u16::from(packed.get(at).copied().unwrap_or(0));
    let pair = byte(bit / 8) << 8 | byte(bit / 8 + 1);
    (pair >> (11 - bit % 8)) as u8 & 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_big_endian_and_zero_padded() {
        let bytes: Vec<u8> = (1..=13).collect();
        assert_eq!(window_at(&bytes, 1), (0x0203_0405_0607_0809, 0x0A0B_0C0D));
        assert_eq!(window_at(&bytes, 2), (0x0304_0506_0708_090A, 0x0B0C_0D00));
        assert_eq!(window_at(&bytes, 12), (0x0D00_0000_0000_0000, 0));
        assert_eq!(window_at(&bytes, 13), (0, 0));
        assert_eq!(window_at(&bytes, 99), (0, 0));
    }

    #[test]
    fn gaps_are_five_bits_each() {
        // 1, 2, 3, 31, 0, 16, 8, 9 as 5-bit numbers.
        let packed = [
            0b0000_1000,
            0b1000_0111,
            0b1111_0000,
            0b0100_0001,
            0b0000_1001,
        ];
        let read: Vec<u8> = (0..9).map(|i| gap_at(&packed, i)).collect();
        assert_eq!(read, [1, 2, 3, 31, 0, 16, 8, 9, 0]);
    }
}
