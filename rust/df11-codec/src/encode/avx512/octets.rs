//! Joins the codes of 64 weights, eight by eight.
//!
//! An *octet* is 8 neighbouring weights: two *quads*, of two pairs each. Where one code is right-aligned in the lower half of a number
//! and the next one left-aligned in the upper half, a rotation joins them: they touch where the number's ends do.
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::{arch::x86_64::*, mem::MaybeUninit};

use super::tables::Tables;
use crate::{encode::runs::STEP, x86};

/// Most bits of an octet: with what stands before it in a byte, it leaves a bit of 64 free.
const MAX_OCTET: i64 = 56;
/// The second words of pairs.
const SECOND_WORDS: u32 = 0xAAAA_AAAA;

/// 64 weights, one behind the other.
pub struct Words([__m512i; 2]);

/// Their codes by octets, in eight numbers. Right where there is a [`total`](Self::total).
#[derive(Clone, Copy)]
pub struct Octets {
    /// Joined and left-aligned; zeros stand behind them.
    pub codes: __m512i,
    /// How many bits.
    pub bits: __m512i,
    /// How many bits all octets before have.
    pub bits_before: __m512i,
    /// The length of each code, a byte a weight.
    pub lengths: __m512i,
    /// That of this code and those before it in its octet.
    pub ends: __m512i,
    /// How many bits all octets have: 64 to 8 times [`MAX_OCTET`]. 0 where these codes must be put one by one.
    pub total: usize,
}

/// Codes of a quad in each number.
struct Quads {
    /// Joined; first quads right-aligned, second ones left-aligned.
    codes: __m512i,
    /// Their lengths, in words.
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

impl Quads {
    /// `exponents` are in the low bytes of words; others look up what their slots have.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new<const FIRST: bool>(exponents: __m512i, tables: &Tables) -> Self {
        let right = _mm512_permutexvar_epi16(exponents, tables.right);
        let codes = _mm512_mask_permutexvar_epi16(right, SECOND_WORDS, exponents, tables.left);
        let lengths = _mm512_permutexvar_epi16(exponents, tables.word_lengths);
        // First pairs are right-aligned: rotated left by their second code's length. Second ones are left-aligned: right by their first
        // code's. The numbers are what the lengths of a quad are multiplied by.
        let turn = _mm512_madd_epi16(lengths, _mm512_set1_epi64(0x0000_FFFF_0001_0000));
        let pairs = _mm512_rolv_epi32(codes, turn);
        let turn = if FIRST {
            // Left by the second pair's length, which stands in the upper half.
            let pair_lengths = _mm512_madd_epi16(lengths, _mm512_set1_epi16(1));
            _mm512_srli_epi64::<32>(pair_lengths)
        } else {
            // Right by the first pair's length.
            _mm512_madd_epi16(lengths, _mm512_set1_epi64(0xFFFF_FFFF))
        };
        Self {
            codes: _mm512_rolv_epi64(pairs, turn),
            lengths,
        }
    }
}

impl Octets {
    #[target_feature(enable = "avx512f")]
    pub fn none() -> Self {
        let zero = _mm512_setzero_si512();
        Self {
            codes: zero,
            bits: zero,
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
        let first = Quads::new::<true>(first, tables);
        let second = Quads::new::<false>(second, tables);
        let first_bits = _mm512_sad_epu8(first.lengths, zero);

        let exponents = _mm512_permutex2var_epi8(front, tables.low, back);
        let owners = _mm512_permutexvar_epi8(exponents, tables.owners);
        let is_foreign = _mm512_cmpneq_epi8_mask(exponents, owners);
        let lengths = _mm512_permutexvar_epi8(exponents, tables.lengths);
        let bits = _mm512_sad_epu8(lengths, zero);
        let is_long = _mm512_cmpgt_epu64_mask(bits, _mm512_set1_epi64(MAX_OCTET));
        let fits = is_foreign | u64::from(is_long) == 0;

        // Eight bytes, of which a sum of bytes makes one number.
        let all = _mm512_permutexvar_epi8(tables.all_octets, bits);
        let total = _mm_cvtsi128_si64(_mm512_castsi512_si128(_mm512_sad_epu8(all, zero)));
        let before = _mm512_and_si512(all, tables.octets_before);
        Self {
            // From where the first quad begins: both touch between the two numbers.
            codes: _mm512_shrdv_epi64(second.codes, first.codes, first_bits),
            bits,
            bits_before: _mm512_sad_epu8(before, zero),
            lengths,
            // The product's bytes are the sums of all bytes up to theirs: at most eight times 16.
            ends: _mm512_mullo_epi64(lengths, _mm512_set1_epi8(1)),
            total: if fits { total as usize } else { 0 },
        }
    }
}
