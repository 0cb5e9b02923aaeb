//! Joins the codes of 64 weights.
//!
//! Where one code is right-aligned in the upper half of a lane and the next one left-aligned in the lower half, they touch: one shift,
//! by the bits that are free on one side, aligns both. So pairs and quads are made. Octets and sixteens are two parts of a lane each,
//! the second one shifted behind the first.
// As in the module above.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::tables::{CODE_BITS, LookedUp, Orders};
use crate::encode::runs::{MAX_RUN, Runs};

/// Left-aligned codes in 64-bit lanes, and the same with only the last bit of each code set.
#[derive(Clone, Copy)]
struct Joined {
    codes: __m256i,
    ends: __m256i,
}

/// The octets.
pub struct Octets {
    /// Octets 0 and 2, and 1 and 3.
    joined: [Joined; 2],
    /// How many bits they have: 0 and 2 in bytes 0 and 1, 1 and 3 in bytes 8 and 9. Other bytes have no meaning.
    bits: __m256i,
}

/// The same, by 16 weights.
pub struct Sixteens {
    joined: Joined,
    /// In bytes 0 and 1. Other bytes have no meaning.
    bits: __m256i,
}

impl Octets {
    /// Right where no octet has more than 64 bits.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn new(codes: &LookedUp, orders: &Orders) -> Self {
        let [right, left] = [codes.first, codes.second].map(|[low, high]| {
            [
                _mm256_unpacklo_epi8(low, high),
                _mm256_unpackhi_epi8(low, high),
            ]
        });
        let [free_first, free_second] = codes.free;
        let free_pairs = _mm256_add_epi8(free_first, free_second);
        // In bytes 0 to 3 and 8 to 11.
        let second_pairs = _mm256_srli_epi64::<32>(free_pairs);
        let free_quads = _mm256_add_epi8(free_pairs, second_pairs);
        let bits_quads = _mm256_sub_epi8(_mm256_set1_epi8(4 * CODE_BITS as i8), free_quads);
        let second_quads = _mm256_srli_epi64::<16>(bits_quads);
        let one = orders.one;
        let joined = [0, 1].map(|half| {
            let [to_first, to_second] = [orders.to_u32[2 * half], orders.to_u32[2 * half + 1]];
            let [to_quads, to_others] = [orders.to_u64[2 * half], orders.to_u64[2 * half + 1]];
            // First pairs, to be right-aligned, and second ones, to be left-aligned.
            let first = _mm256_unpacklo_epi16(left[half], right[half]);
            let second = _mm256_unpackhi_epi16(left[half], right[half]);
            let free = _mm256_shuffle_epi8(free_second, to_first);
            let end = _mm256_srlv_epi32(orders.upper_one, free);
            let first = Joined {
                codes: _mm256_srlv_epi32(first, free),
                ends: _mm256_or_si256(end, one),
            };
            let free = _mm256_shuffle_epi8(free_first, to_second);
            let free_pair = _mm256_shuffle_epi8(free_pairs, to_second);
            let end = _mm256_sllv_epi32(orders.upper_one, free);
            let second = Joined {
                codes: _mm256_sllv_epi32(second, free),
                ends: _mm256_or_si256(end, _mm256_sllv_epi32(one, free_pair)),
            };
            let first_quad = Joined {
                codes: _mm256_unpacklo_epi32(second.codes, first.codes),
                ends: _mm256_unpacklo_epi32(second.ends, first.ends),
            };
            let second_quad = Joined {
                codes: _mm256_unpackhi_epi32(second.codes, first.codes),
                ends: _mm256_unpackhi_epi32(second.ends, first.ends),
            };
            let first_quad = first_quad.shift_left(_mm256_shuffle_epi8(free_pairs, to_quads));
            let second_quad = second_quad.shift_left(_mm256_shuffle_epi8(free_pairs, to_others));
            first_quad.followed_by(second_quad, _mm256_shuffle_epi8(bits_quads, to_quads))
        });
        Self {
            joined,
            bits: _mm256_add_epi8(bits_quads, second_quads),
        }
    }

    /// Right where none has more than 64 bits; their lengths always are.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn by_two(&self, orders: &Orders) -> Sixteens {
        let [first, second] = self.joined;
        Sixteens {
            joined: first.followed_by(second, _mm256_shuffle_epi8(self.bits, orders.to_u64[0])),
            bits: _mm256_adds_epu8(self.bits, _mm256_bsrli_epi128::<8>(self.bits)),
        }
    }

    /// Nothing set where none has more than [`MAX_RUN`] bits.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn too_long(&self) -> __m256i {
        too_long(self.bits, _mm256_set1_epi64x(0xFFFF))
    }

    /// Stores them in order.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[target_feature(enable = "avx2")]
    pub unsafe fn store(&self, orders: &Orders, runs: &mut Runs) {
        for (half, joined) in self.joined.into_iter().enumerate() {
            let mut part = Runs::default();
            joined.store(&mut part);
            store(
                &mut part.bits,
                _mm256_shuffle_epi8(self.bits, orders.to_u64[2 * half]),
            );
            for run in 0..4 {
                runs.codes[2 * run + half] = part.codes[run];
                runs.ends[2 * run + half] = part.ends[run];
                runs.bits[2 * run + half] = part.bits[run];
            }
        }
        runs.count = 8;
    }
}

impl Sixteens {
    /// Nothing set where none has more than [`MAX_RUN`] bits.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn too_long(&self) -> __m256i {
        too_long(self.bits, _mm256_set_epi64x(0, 0xFFFF, 0, 0xFFFF))
    }

    /// Stores them in order.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn store(&self, orders: &Orders, runs: &mut Runs) {
        self.joined.store(runs);
        store(
            &mut runs.bits,
            _mm256_shuffle_epi8(self.bits, orders.to_u64[0]),
        );
        runs.count = 4;
    }
}

impl Joined {
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn shift_left(self, bits: __m256i) -> Self {
        Self {
            codes: _mm256_sllv_epi64(self.codes, bits),
            ends: _mm256_sllv_epi64(self.ends, bits),
        }
    }

    /// Joins with what follows, `bits` being the lengths of the first parts.
    ///
    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn followed_by(self, next: Self, bits: __m256i) -> Self {
        Self {
            codes: _mm256_or_si256(self.codes, _mm256_srlv_epi64(next.codes, bits)),
            ends: _mm256_or_si256(self.ends, _mm256_srlv_epi64(next.ends, bits)),
        }
    }

    /// # Safety
    /// The processor must have the features below.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(self, runs: &mut Runs) {
        store(&mut runs.codes, self.codes);
        store(&mut runs.ends, self.ends);
    }
}

/// Nothing set where no length is more than [`MAX_RUN`].
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn too_long(bits: __m256i, is_length: __m256i) -> __m256i {
    let above = _mm256_subs_epu8(bits, _mm256_set1_epi8(MAX_RUN as i8));
    _mm256_and_si256(above, is_length)
}

/// Stores four numbers.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(numbers: &mut [u64; 8], vector: __m256i) {
    // SAFETY: there is room for 64 bytes.
    _mm256_storeu_si256(numbers.as_mut_ptr().cast(), vector);
}
