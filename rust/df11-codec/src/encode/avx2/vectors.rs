//! Steps of the AVX2 encoder that know nothing of buffers: vectors in, vectors out.
// As in the module above.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::LookedUp;

/// The `sign_mantissa` bytes of 32 weights.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn sign_mantissa(words: [__m256i; 2]) -> __m256i {
    let mantissa = _mm256_set1_epi16(0x7F);
    let sign = _mm256_set1_epi16(0x80);
    let mut halves = words;
    for half in &mut halves {
        let high = _mm256_and_si256(_mm256_srli_epi16::<8>(*half), sign);
        *half = _mm256_or_si256(_mm256_and_si256(*half, mantissa), high);
    }
    in_order(_mm256_packus_epi16(halves[0], halves[1]))
}

/// The exponents of 32 weights.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn exponents(words: [__m256i; 2]) -> __m256i {
    let mut exponents = words;
    for words in &mut exponents {
        *words = _mm256_srli_epi16::<8>(_mm256_add_epi16(*words, *words));
    }
    in_order(_mm256_packus_epi16(exponents[0], exponents[1]))
}

/// Undoes the lanes of a pack.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn in_order(packed: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
}

/// Joins the codes of 8 neighbours; right wherever these have at most 64 bits.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn join_8(codes: &LookedUp) -> __m256i {
    const Z: i8 = -1;
    let lengths = codes.lengths;
    let lengths_of_2 = _mm256_maddubs_epi16(lengths, _mm256_set1_epi8(1));
    let lengths_of_4 = _mm256_madd_epi16(lengths_of_2, _mm256_set1_epi16(1));
    // The second of each two neighbours' lengths, as 32-bit numbers; then of each two pairs', as 64-bit numbers.
    let second = [
        [1, Z, Z, Z, 3, Z, Z, Z, 5, Z, Z, Z, 7, Z, Z, Z],
        [9, Z, Z, Z, 11, Z, Z, Z, 13, Z, Z, Z, 15, Z, Z, Z],
    ];
    let second_of_2 = [
        [2, Z, Z, Z, Z, Z, Z, Z, 6, Z, Z, Z, Z, Z, Z, Z],
        [10, Z, Z, Z, Z, Z, Z, Z, 14, Z, Z, Z, Z, Z, Z, Z],
    ];
    let mut joined = [
        _mm256_unpacklo_epi8(codes.low, codes.high),
        _mm256_unpackhi_epi8(codes.low, codes.high),
    ];
    for (half, codes) in joined.iter_mut().enumerate() {
        let shift = _mm256_shuffle_epi8(lengths, in_both_lanes(second[half].map(|i| i as u8)));
        let first = _mm256_and_si256(*codes, _mm256_set1_epi32(0xFFFF));
        let of_2 = _mm256_or_si256(
            _mm256_sllv_epi32(first, shift),
            _mm256_srli_epi32::<16>(*codes),
        );
        let order = in_both_lanes(second_of_2[half].map(|i| i as u8));
        let shift = _mm256_shuffle_epi8(lengths_of_2, order);
        let first = _mm256_and_si256(of_2, _mm256_set1_epi64x(0xFFFF_FFFF));
        *codes = _mm256_or_si256(
            _mm256_sllv_epi64(first, shift),
            _mm256_srli_epi64::<32>(of_2),
        );
    }
    let first = _mm256_unpacklo_epi64(joined[0], joined[1]);
    let second = _mm256_unpackhi_epi64(joined[0], joined[1]);
    let shift = _mm256_srli_epi64::<32>(lengths_of_4);
    _mm256_or_si256(_mm256_sllv_epi64(first, shift), second)
}

/// For each of 32 bytes, the sum of it and those before.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn running_sum(bytes: __m256i) -> __m256i {
    const Z: u8 = 0x80;
    let sum = _mm256_add_epi8(bytes, _mm256_slli_epi64::<8>(bytes));
    let sum = _mm256_add_epi8(sum, _mm256_slli_epi64::<16>(sum));
    let sum = _mm256_add_epi8(sum, _mm256_slli_epi64::<32>(sum));
    let to_upper_half = in_both_lanes([Z, Z, Z, Z, Z, Z, Z, Z, 7, 7, 7, 7, 7, 7, 7, 7]);
    let sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(sum, to_upper_half));
    let lane_sum = _mm256_shuffle_epi8(sum, _mm256_set1_epi8(15));
    // The lower lane's sum in the upper lane, zeros in the lower.
    let carry = _mm256_permute2x128_si256::<0x08>(lane_sum, lane_sum);
    _mm256_add_epi8(sum, carry)
}

/// # Safety
/// The processor must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn in_both_lanes(bytes: [u8; 16]) -> __m256i {
    // SAFETY: 16 bytes are read.
    _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast()))
}

/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn any_top_bit(bytes: __m256i) -> bool {
    _mm256_movemask_epi8(bytes) != 0
}

/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn low_u64(vector: __m256i) -> u64 {
    _mm256_extract_epi64::<0>(vector) as u64
}

/// The first of the upper lane.
///
/// # Safety
/// The processor must have the features below.
#[inline]
#[target_feature(enable = "avx2")]
pub unsafe fn high_u64(vector: __m256i) -> u64 {
    _mm256_extract_epi64::<2>(vector) as u64
}
