//! The classes of 64 weights at once, in plain Rust.

// They must become part of their caller's loop.
#![allow(clippy::inline_always)]

use super::{
    classes::{Classes, WINDOW},
    runs::STEP,
};
use crate::bf16;

/// The classes of 64 weights, two a byte, the first one in the lower half. Says too whether all weights have one.
///
/// In loops that each do one thing to numbers of one size: so compilers make vectors of them.
#[inline(always)]
pub fn classify(classes: &Classes, weights: &[u8; 2 * STEP]) -> ([u8; STEP / 2], bool) {
    let mut found = [0; STEP];
    for (exponent, word) in found.iter_mut().zip(bf16::words(weights)) {
        *exponent = bf16::exponent(word);
    }
    let mut foreign = [0; 16];
    for found in found.chunks_exact_mut(16) {
        for (class, foreign) in found.iter_mut().zip(&mut foreign) {
            let exponent = *class;
            *class = exponent.wrapping_sub(classes.base).min(WINDOW as u8);
            let is_other = *class == WINDOW as u8;
            *foreign |= if is_other { exponent ^ classes.hole } else { 0 };
        }
    }
    let mut pairs = [0; STEP / 2];
    for (pair, found) in pairs.iter_mut().zip(found.chunks_exact(2)) {
        let both = u16::from_le_bytes([found[0], found[1]]);
        *pair = (both | both >> 4) as u8;
    }
    (pairs, foreign == [0; 16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codebook::Code;

    #[test]
    fn every_exponent_in_every_place() {
        let mut codes = [Code::default(); 256];
        for exponent in (98..113).chain([7]) {
            codes[exponent] = Code { value: 0, bits: 4 };
        }
        let classes = Classes::new(&codes);
        for exponent in 0..=u8::MAX {
            let expected = match exponent {
                98..113 => Some(exponent - 98),
                7 => Some(15),
                _ => None,
            };
            for place in 0..STEP {
                let mut words = [100u16 << 7 | 0x8055; STEP];
                words[place] = u16::from(exponent) << 7 | 0x2A;
                let weights: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let weights = weights.first_chunk().expect("64 weights");
                let (pairs, all_have_one) = classify(&classes, weights);
                assert_eq!(all_have_one, expected.is_some(), "{exponent}");
                for at in 0..STEP {
                    let found = pairs[at / 2] >> (4 * (at % 2)) & 15;
                    let expected = if at == place { expected } else { Some(2) };
                    assert!(expected.is_none_or(|class| class == found), "{exponent}");
                }
            }
        }
    }
}
