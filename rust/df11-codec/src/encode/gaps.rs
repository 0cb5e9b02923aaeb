//! Five bits a window.

use crate::limits::GAP_BITS;

/// Packs `gaps` into `packed`. The first `padding` of them (fewer than eight, all zero) only align the others to a group of eight,
/// that is to five bytes, and give no bytes of their own.
pub fn pack(gaps: &[u8], padding: usize, packed: &mut Vec<u8>) {
    packed.clear();
    if gaps.len() <= padding {
        return;
    }
    let mut skip = padding * GAP_BITS as usize / 8;
    let bytes = (gaps.len() * GAP_BITS as usize).div_ceil(8) - skip;
    for group in gaps.chunks(8) {
        let word = group
            .iter()
            .fold(0u64, |word, &gap| word << GAP_BITS | u64::from(gap));
        // The group's bits, left-aligned in five bytes.
        let aligned = word << (GAP_BITS as usize * (8 - group.len()));
        packed.extend_from_slice(&aligned.to_be_bytes()[3 + skip..]);
        skip = 0;
    }
    packed.truncate(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, bit by bit.
    fn by_bits(gaps: &[u8], padding: usize) -> Vec<u8> {
        let first_bit = 5 * padding;
        let bits: Vec<u8> = gaps
            .iter()
            .flat_map(|gap| (0..5).rev().map(move |i| gap >> i & 1))
            .collect();
        let bytes: Vec<u8> = bits
            .chunks(8)
            .map(|byte| byte.iter().fold(0, |b, bit| b << 1 | bit) << (8 - byte.len()))
            .collect();
        if gaps.len() == padding {
            Vec::new()
        } else {
            bytes[first_bit / 8..].to_vec()
        }
    }

    #[test]
    fn every_alignment_and_length() {
        for padding in 0..8 {
            for n in 0..30u8 {
                let mut gaps = vec![0; padding];
                gaps.extend((0..n).map(|i| (i * 7 + 11) % 32));
                let mut packed = vec![99; 3];
                pack(&gaps, padding, &mut packed);
                assert_eq!(packed, by_bits(&gaps, padding), "{padding} + {n}");
            }
        }
    }
}
