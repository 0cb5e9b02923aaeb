//! A code without one-bit words: at most 16,384 weights in a kernel chunk, whatever the unit.

use super::{Codebook, Counts, tree};

/// The Huffman merging stopped at four nodes, which get the prefixes 00, 01, 10, 11, the largest first; `None` where a code is
/// longer than 32 bits.
pub fn two_bit(counts: &Counts) -> Option<Codebook> {
    Codebook::from_leaves(&tree::leaves(counts, 4, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codebook::Code;

    #[test]
    fn the_frequent_exponent_is_00() {
        let mut counts = [0; 256];
        counts[5] = 1;
        let one = two_bit(&counts).expect("short codes");
        assert_eq!(
            (one.codes[5], one.eof),
            (Code { value: 0, bits: 2 }, Code { value: 1, bits: 2 })
        );

        counts[120] = 1_000_000;
        counts[121] = 1000;
        counts[122] = 10;
        let four = two_bit(&counts).expect("short codes");
        let code = |value, bits| Code { value, bits };
        // EOF and 5 are merged; five symbols leave four nodes.
        assert_eq!(
            [120, 121, 122].map(|e| four.codes[e]),
            [code(0, 2), code(1, 2), code(2, 2)]
        );
        assert_eq!((four.eof, four.codes[5]), (code(6, 3), code(7, 3)));
        assert_eq!(four.order, [120, 121, 122, 5]);
    }
}
