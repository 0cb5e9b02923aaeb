//! Steps of the AVX2 encoder that know nothing of buffers: vectors in, vectors out.
//!
//! An *octet* is 8 neighbouring weights: two *quads*, of two pairs each. The eight octets of a step are numbered 0 to 7. All work stays in
//! the 128-bit lanes: the lower ones have octets 0 to 3, the upper ones 4 to 7, and below the lower ones stand for both.
// As in the module above.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::tables::Orders;
use crate::x86;

/// Low and high bytes of 32 weights: of octets 0 and 2 by turns, or of 1 and 3; each octet's in the order of [`Orders::bytes`].
#[derive(Clone, Copy)]
pub struct Bytes {
    low: __m256i,
    high: __m256i,
}

/// Takes 64 weights apart.
///
/// # Safety
/// The processor must have the features below, and `weights` point to 128 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn load(weights: *const u8, orders: &Orders) -> [Bytes; 2] {
    for line in [0, 64] {
        _mm_prefetch::<_MM_HINT_T0>(weights.wrapping_add(x86::AHEAD + line).cast());
    }
    [0, 1].map(|first| {
        let [first, second] = [first, first + 2].map(|octet| {
            // SAFETY: octets are 16 bytes, the last one number 7.
            let lower = _mm_loadu_si128(weights.add(16 * octet).cast());
            let upper = _mm_loadu_si128(weights.add(16 * octet + 64).cast());
            let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(lower), upper);
            _mm256_shuffle_epi8(both, orders.bytes)
        });
        Bytes {
            low: _mm256_unpacklo_epi8(first, second),
            high: _mm256_unpackhi_epi8(first, second),
        }
    })
}

/// The exponents, in the order of the bytes.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn exponents(bytes: Bytes) -> __m256i {
    // -1 where the lowest bit is set.
    let lowest = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes.low);
    _mm256_sub_epi8(_mm256_add_epi8(bytes.high, bytes.high), lowest)
}

/// Writes the `sign_mantissa` bytes of 64 weights.
///
/// # Safety
/// The processor must have the features below, and `to` point to 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn store_sign_mantissa(bytes: [Bytes; 2], orders: &Orders, to: *mut u8) {
    let sign = _mm256_set1_epi8(0x80u8 as i8);
    let [even, odd] = bytes.map(|bytes| {
        let differs = _mm256_and_si256(_mm256_xor_si256(bytes.low, bytes.high), sign);
        _mm256_shuffle_epi8(_mm256_xor_si256(bytes.low, differs), orders.octets)
    });
    let halves = [
        _mm256_unpacklo_epi64(even, odd),
        _mm256_unpackhi_epi64(even, odd),
    ];
    for (at, half) in halves.into_iter().enumerate() {
        // SAFETY: two octets each, the last ones number 6 and 7.
        let to = to.add(16 * at);
        _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(half));
        _mm_storeu_si128(to.add(32).cast(), _mm256_extracti128_si256::<1>(half));
    }
}
