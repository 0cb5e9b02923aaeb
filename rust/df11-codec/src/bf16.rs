//! BF16 words: 1 sign bit, 8 exponent bits, 7 mantissa bits.

/// The exponent, the half that is entropy-coded.
#[inline]
pub const fn exponent(word: u16) -> u8 {
    (word >> 7) as u8
}

/// Sign (bit 7) and mantissa (bits 0..=6), the half that is stored as it is.
#[inline]
pub const fn sign_mantissa(word: u16) -> u8 {
    (word >> 8) as u8 & 0x80 | word as u8 & 0x7F
}

/// The word with these halves.
#[inline]
pub const fn join(exponent: u8, sign_mantissa: u8) -> u16 {
    let sm = sign_mantissa as u16;
    (sm & 0x80) << 8 | (exponent as u16) << 7 | sm & 0x7F
}

/// Words of a little-endian slice of even length.
#[inline]
pub(crate) fn words(
    bytes: &[u8],
) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + Clone {
    bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_known_values() {
        // 1.0, -1.5, smallest subnormal, -0.0, infinity.
        for (word, e, sm) in [
            (0x3F80, 127, 0),
            (0xBFC0, 127, 0xC0),
            (0x0001, 0, 1),
            (0x8000, 0, 0x80),
            (0x7F80, 255, 0),
        ] {
            assert_eq!(
                (exponent(word), sign_mantissa(word)),
                (e, sm),
                "{word:#06x}"
            );
        }
    }

    #[test]
    fn every_word_survives() {
        for word in 0..=u16::MAX {
            assert_eq!(join(exponent(word), sign_mantissa(word)), word);
        }
    }
}
