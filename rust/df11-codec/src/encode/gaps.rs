//! Five bits a window.

use crate::limits::GAP_BITS;

/// Gaps that fill whole bytes, and how many of these.
const GROUP: usize = 8;
const GROUP_BYTES: usize = GAP_BITS as usize;

/// Packs `gaps` into `packed`. The first `padding` of them (fewer than eight, all zero) only align the others to a group of eight,
/// that is to five bytes, and give no bytes of their own.
pub fn pack(gaps: &[u8], padding: usize, packed: &mut Vec<u8>) {
    packed.clear();
    if gaps.len() <= padding {
        return;
    }
    let bytes = (gaps.len() * GAP_BITS as usize).div_ceil(8);
    packed.resize(gaps.len().div_ceil(GROUP) * GROUP_BYTES, 0);
    let groups = gaps.chunks(GROUP).zip(packed.chunks_exact_mut(GROUP_BYTES));
    for (group, packed) in groups {
        let word = match group.first_chunk() {
            Some(group) => u64::from_be_bytes(*group),
            None => {
                group
                    .iter()
                    .fold(0, |word, &gap| word << 8 | u64::from(gap))
                    << (8 * (GROUP - group.len()))
            }
        };
        packed.copy_from_slice(&join(word).to_be_bytes()[8 - GROUP_BYTES..]);
    }
    packed.truncate(bytes);
    packed.drain(..padding * GAP_BITS as usize / 8);
}

/// The lower five bits of all eight bytes: those of two bytes first, then of four.
fn join(bytes: u64) -> u64 {
    let pairs = (bytes & 0x1F00_1F00_1F00_1F00) >> 3 | bytes & 0x001F_001F_001F_001F;
    let quads = (pairs & 0x03FF_0000_03FF_0000) >> 6 | pairs & 0x0000_03FF_0000_03FF;
    (quads & 0x000F_FFFF_0000_0000) >> 12 | quads & 0x000F_FFFF
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
