//! The official tool's way to keep codes within 32 bits: ever more of the rarest exponents count as 1.

use super::{Codebook, Counts, huffman};

/// The official code and how it came about.
pub struct OfficialCode {
    pub codebook: Codebook,
    /// Counts were changed.
    pub limited: bool,
    /// The last exponent that was set to 1 and the first that was not have the same count above 1, so which of them the official
    /// tool takes depends on its numpy.
    pub tie: bool,
}

/// The Huffman code of `counts`, with the k rarest exponents' counts set to 1 for the first k of 2, 3, ... that is needed.
pub fn official(counts: &Counts) -> OfficialCode {
    if let Some(codebook) = huffman(counts) {
        return OfficialCode {
            codebook,
            limited: false,
            tie: false,
        };
    }
    let mut rarest: Vec<(u64, usize)> = counts
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count > 0)
        .map(|(exponent, &count)| (count, exponent))
        .collect();
    rarest.sort_unstable();
    let mut k = 2;
    loop {
        let mut changed = *counts;
        for &(_, exponent) in rarest.iter().take(k) {
            changed[exponent] = 1;
        }
        // Ends: with all counts at 1 no code is longer than 9 bits.
        if let Some(codebook) = huffman(&changed) {
            // Where counts are 1 already nothing was changed, so the tie is one above 1.
            let tie = rarest
                .get(k)
                .is_some_and(|&(count, _)| count == rarest[k - 1].0);
            return OfficialCode {
                codebook,
                limited: true,
                tie,
            };
        }
        k += 1;
    }
}
