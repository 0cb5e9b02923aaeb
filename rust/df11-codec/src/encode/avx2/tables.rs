//! Codes and lengths of 64 weights by byte shuffles.
// As in the module above.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::vectors::{Bytes, exponents};
use crate::encode::classes::{Classes, NO_CODE, WINDOW};

/// Order in which an octet's weights are taken: the first ones of pairs, then the second ones; of each the quads' first pairs, then
/// their second ones.
const ORDER: [u8; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
/// Bits of a class's code and what is kept free beside it.
pub const CODE_BITS: u8 = 16;

/// What the steps look up and shuffle by, in both lanes.
///
/// Made once for a piece and read from memory: a compiler that knows the orders makes more of the shuffles, not less.
pub struct Tables {
    pub orders: Orders,
    base: __m256i,
    /// The exponent of a class. One without a code has none of its exponents.
    owner: __m256i,
    /// How many bits a code is shorter than 16.
    free: __m256i,
    /// Low and high bytes of codes, right-aligned and left-aligned in 16 bits.
    right: [__m256i; 2],
    left: [__m256i; 2],
}

/// Codes of 64 weights: of the first ones of each pair, and of the second ones. Bytes are ordered as [`exponents`] has them.
pub struct LookedUp {
    /// How many bits the codes are shorter than 16.
    pub free: [__m256i; 2],
    /// Low and high bytes of the codes, those of first ones right-aligned in 16 bits, those of second ones left-aligned.
    pub first: [__m256i; 2],
    pub second: [__m256i; 2],
    /// Nothing set where all weights have a code.
    without_code: __m256i,
}

impl Tables {
    /// # Safety
    /// The processor must have the features below.
    #[inline(never)]
    #[target_feature(enable = "avx2")]
    pub unsafe fn new(classes: &Classes) -> Self {
        let mut owner = [0; 16];
        let mut free = [0; 16];
        let mut left = [[0; 16]; 2];
        for (class, &bits) in classes.lengths.iter().enumerate() {
            let nobody = classes.base.wrapping_add(class as u8 + 1);
            owner[class] = match class {
                _ if bits == NO_CODE => nobody,
                WINDOW => classes.hole,
                _ => nobody.wrapping_sub(1),
            };
            free[class] = CODE_BITS.saturating_sub(bits);
            let code = u16::from_le_bytes([classes.low[class], classes.high[class]]);
            [left[0][class], left[1][class]] = (code << free[class]).to_le_bytes();
        }
        Self {
            orders: Orders::new(),
            base: _mm256_set1_epi8(classes.base as i8),
            owner: in_both_lanes(owner),
            free: in_both_lanes(free),
            right: [in_both_lanes(classes.low), in_both_lanes(classes.high)],
            left: [in_both_lanes(left[0]), in_both_lanes(left[1])],
        }
    }

    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn look_up(&self, bytes: [Bytes; 2]) -> LookedUp {
        let mut classes = [self.base; 2];
        let mut without_code = _mm256_setzero_si256();
        for (class, bytes) in classes.iter_mut().zip(bytes) {
            let exponents = exponents(bytes);
            let above_base = _mm256_sub_epi8(exponents, self.base);
            *class = _mm256_min_epu8(above_base, _mm256_set1_epi8(WINDOW as i8));
            let owner = _mm256_shuffle_epi8(self.owner, *class);
            let is_foreign = _mm256_xor_si256(owner, exponents);
            without_code = _mm256_or_si256(without_code, is_foreign);
        }
        let first = _mm256_unpacklo_epi64(classes[0], classes[1]);
        let second = _mm256_unpackhi_epi64(classes[0], classes[1]);
        LookedUp {
            free: [
                _mm256_shuffle_epi8(self.free, first),
                _mm256_shuffle_epi8(self.free, second),
            ],
            first: [
                _mm256_shuffle_epi8(self.right[0], first),
                _mm256_shuffle_epi8(self.right[1], first),
            ],
            second: [
                _mm256_shuffle_epi8(self.left[0], second),
                _mm256_shuffle_epi8(self.left[1], second),
            ],
            without_code,
        }
    }
}

impl LookedUp {
    /// Whether every weight has a code, and nothing is set in `too_long`.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn is_fine(&self, too_long: __m256i) -> bool {
        let bad = _mm256_or_si256(self.without_code, too_long);
        _mm256_testz_si256(bad, bad) == 1
    }
}

/// Orders of bytes for shuffles, and numbers.
pub struct Orders {
    /// Low bytes of an octet's weights, then high ones, as [`ORDER`] says.
    pub bytes: __m256i,
    /// Two octets, taken by turns from a vector in that order, one behind the other.
    pub octets: __m256i,
    /// The four bytes from byte 0, 4, 8 or 12 as 32-bit numbers.
    pub to_u32: [__m256i; 4],
    /// The two bytes from byte 0, 2, 8 or 10 as 64-bit numbers.
    pub to_u64: [__m256i; 4],
    /// 1, and 1 in the upper half, as 32-bit numbers.
    pub one: __m256i,
    pub upper_one: __m256i,
}

impl Orders {
    /// # Safety
    /// The processor must have the features below.
    #[target_feature(enable = "avx2")]
    unsafe fn new() -> Self {
        let (mut bytes, mut octets) = ([0; 16], [0; 16]);
        for (at, weight) in (0..).zip(ORDER) {
            bytes[usize::from(at)] = 2 * weight;
            bytes[usize::from(at + 8)] = 2 * weight + 1;
            octets[usize::from(weight)] = 2 * at;
            octets[usize::from(weight + 8)] = 2 * at + 1;
        }
        Self {
            bytes: in_both_lanes(bytes),
            octets: in_both_lanes(octets),
            to_u32: [0, 4, 8, 12].map(|from| in_both_lanes(widen(from, 4))),
            to_u64: [0, 2, 8, 10].map(|from| in_both_lanes(widen(from, 8))),
            one: _mm256_set1_epi32(1),
            upper_one: _mm256_set1_epi32(1 << CODE_BITS),
        }
    }
}

/// The order that makes numbers of `size` bytes of the bytes from byte `from` on.
fn widen(from: u8, size: usize) -> [u8; 16] {
    let mut order = [0x80; 16];
    for (byte, number) in (from..).zip(order.chunks_exact_mut(size)) {
        number[0] = byte;
    }
    order
}

/// # Safety
/// The processor must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn in_both_lanes(bytes: [u8; 16]) -> __m256i {
    // SAFETY: 16 bytes are read.
    _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast()))
}
