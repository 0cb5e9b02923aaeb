//! Joins the codes of 64 weights, eight by eight.
//!
//! An *octet* is 8 neighbouring weights: two *quads*, of two pairs each; two octets are a *sixteen*. Where one code is right-aligned in
//! the lower half of a number and the next one left-aligned in the upper half, a rotation joins them: they touch where its ends do.
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::{arch::x86_64::*, mem::MaybeUninit};

use super::tables::Tables;
use crate::{
    encode::runs::{MAX_RUN, STEP},
    x86,
};

/// The first and the second numbers of two.
const FIRST: u8 = 0x55;
const SECOND: u8 = 0xAA;
/// The second words of pairs.
const SECOND_WORDS: u32 = 0xAAAA_AAAA;

/// 64 weights, one behind the other.
pub struct Words([__m512i; 2]);

/// Their codes, in eight numbers for as many octets. Right where there is a [`total`](Self::total).
#[derive(Clone, Copy)]
pub struct Octets {
    /// Joined by two, in two numbers: left-aligned in 128 bits, the upper ones first. Zeros stand behind them.
    pub sixteens: __m512i,
    /// The bits that stand before the next of those numbers, right-aligned: the upper ones, and the second octet.
    pub last: __m512i,
    /// How many bits all octets before have.
    pub bits_before: __m512i,
    /// The length of each code, a byte a weight.
    pub lengths: __m512i,
    /// That of this code and those before it in its octet.
    pub ends: __m512i,
    /// How many bits all octets have: 64 to eight times [`MAX_RUN`]. 0 where these codes must be put one by one.
    pub total: usize,
}

/// Codes of two pairs in each number.
struct Pairs {
    /// Joined; first pairs right-aligned, second ones left-aligned.
    codes: __m512i,
    /// The length of each code, in words.
    lengths: __m512i,
}

impl Words {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn load(weights: &[u8; 2 * STEP]) -> Self {
        let from = weights.as_ptr();
        for line in [0, 64] {
            // SAFETY: nothing is read. Newer compilers need not be told.
            #[allow(unused_unsafe)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(x86::AHEAD + line).cast());
            }
        }
        // SAFETY: 64 bytes are read, and the 64 behind them.
        unsafe {
            Self([
                _mm512_loadu_si512(from.cast()),
                _mm512_loadu_si512(from.add(64).cast()),
            ])
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub fn store_sign_mantissa(&self, tables: &Tables, to: &mut [MaybeUninit<u8>; STEP]) {
        let [front, back] = self.0;
        let low = _mm512_permutex2var_epi8(front, tables.low, back);
        let high = _mm512_permutex2var_epi8(front, tables.high, back);
        let sign = _mm512_set1_epi8(0x80u8 as i8);
        // The sign's bit of the high byte, the others of the low one: the number says which combinations of the three bits give 1.
        let bytes = _mm512_ternarylogic_epi64::<0b1100_1010>(sign, high, low);
        // SAFETY: there is room for 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), bytes) };
    }
}

impl Pairs {
    /// `exponents` are in the low bytes of words; others look up what their slots have.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(exponents: __m512i, tables: &Tables) -> Self {
        let right = _mm512_permutexvar_epi16(exponents, tables.right);
        let codes = _mm512_mask_permutexvar_epi16(right, SECOND_WORDS, exponents, tables.left);
        let lengths = _mm512_permutexvar_epi16(exponents, tables.word_lengths);
        // First pairs are rotated left by the second code's length, second ones right by the first code's: each number's lengths, times
        // 0, 1, -1 and 0. Of that, a rotation only takes as many of the lowest bits as it needs.
        let turns = _mm512_madd_epi16(lengths, _mm512_set1_epi64(0x0000_FFFF_0001_0000));
        Self {
            codes: _mm512_rolv_epi32(codes, turns),
            lengths,
        }
    }

    /// Quads, right-aligned; and how many bits: in the lowest six, others mean nothing.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn right_aligned(self) -> (__m512i, __m512i) {
        let pair_lengths = _mm512_madd_epi16(self.lengths, _mm512_set1_epi16(1));
        let second = _mm512_srli_epi64::<32>(pair_lengths);
        let bits = _mm512_add_epi64(pair_lengths, second);
        (_mm512_rolv_epi64(self.codes, second), bits)
    }

    /// Quads, left-aligned.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn left_aligned(self) -> __m512i {
        // To the right by the first pair's length.
        let turns = _mm512_madd_epi16(self.lengths, _mm512_set1_epi64(0xFFFF_FFFF));
        _mm512_rolv_epi64(self.codes, turns)
    }
}

impl Octets {
    #[target_feature(enable = "avx512f")]
    pub fn none() -> Self {
        let zero = _mm512_setzero_si512();
        Self {
            sixteens: zero,
            last: zero,
            bits_before: zero,
            lengths: zero,
            ends: zero,
            total: 0,
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2")]
    pub fn new(words: &Words, tables: &Tables) -> Self {
        let zero = _mm512_setzero_si512();
        let [front, back] = words.0.map(|words| _mm512_srli_epi16::<7>(words));
        let first = _mm512_permutex2var_epi64(front, tables.first_quads, back);
        let second = _mm512_permutex2var_epi64(front, tables.second_quads, back);
        let (first, first_bits) = Pairs::new(first, tables).right_aligned();
        let second = Pairs::new(second, tables).left_aligned();

        let exponents = _mm512_permutex2var_epi8(front, tables.low, back);
        let owners = _mm512_permutexvar_epi8(exponents, tables.owners);
        let is_foreign = _mm512_cmpneq_epi8_mask(exponents, owners);
        let lengths = _mm512_permutexvar_epi8(exponents, tables.lengths);
        let bits = _mm512_sad_epu8(lengths, zero);
        let is_long = _mm512_cmpgt_epu64_mask(bits, _mm512_set1_epi64(MAX_RUN.into()));
        let fits = is_foreign | u64::from(is_long) == 0;

        // A shift of 128 bits, in which both quads touch, by as many as the first one has. Two octets touch likewise: what they have in
        // the upper 64 bits, and what is left of the second one for the lower ones.
        let codes = _mm512_shrdv_epi64(second, first, first_bits);
        let above = _mm512_mask_rolv_epi64(codes, FIRST, codes, bits);
        let below = _mm512_maskz_unpackhi_epi64(FIRST, codes, codes);
        let sixteens = _mm512_shrdv_epi64(below, above, _mm512_unpacklo_epi64(bits, bits));

        // Eight bytes, of which a sum of bytes makes one number.
        let all = _mm512_permutexvar_epi8(tables.all_octets, bits);
        let total = _mm_cvtsi128_si64(_mm512_castsi512_si128(_mm512_sad_epu8(all, zero)));
        let before = _mm512_and_si512(all, tables.octets_before);
        Self {
            sixteens,
            last: _mm512_mask_rolv_epi64(sixteens, SECOND, codes, bits),
            bits_before: _mm512_sad_epu8(before, zero),
            lengths,
            // The product's bytes are the sums of all bytes up to theirs: at most eight times 16.
            ends: _mm512_mullo_epi64(lengths, _mm512_set1_epi8(1)),
            total: if fits { total as usize } else { 0 },
        }
    }
}
