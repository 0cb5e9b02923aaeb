//! 32 weights a step with AVX2.
//!
//! Codes and lengths come from byte shuffles; neighbouring codes are joined pair by pair, to 8 weights in 64 bits and, where they are
//! short enough, to 16. Bits go to memory with one unaligned store for each joined code; a running sum of the 32 lengths gives the gaps.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

use std::arch::x86_64::*;

use super::{
    Input, Output,
    block::{Block, MAX_PUT, encode_blocks},
    classes::{Classes, WINDOW},
};
use crate::{codebook::Code, limits::WINDOW_BITS, x86};

/// Weights of a step.
const STEP: usize = 32;
/// Most bits of a step whose ends, counted from the border of the window in which it starts, are below 256.
const MAX_STEP_BITS: u64 = 255 - 63;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    let classes = Classes::new(input.codes);
    if !classes.pay || !x86::has_avx2() {
        return super::scalar::encode(input, out);
    }
    encode_blocks(input, out, |weights, block, out| {
        // SAFETY: the processor has the features, as asked above.
        unsafe { encode_block(&classes, input.codes, weights, block, out) }
    })
}

/// # Safety
/// The processor must have the features of [`x86::has_avx2`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn encode_block(
    classes: &Classes,
    codes: &[Code; 256],
    weights: &[u8],
    block: &mut Block,
    out: &mut Output<'_>,
) {
    let steps = weights.chunks_exact(2 * STEP);
    let rest = steps.remainder();
    let full = steps.len() * STEP;
    out.sign_mantissa.reserve(weights.len() / 2);
    let halves = out.sign_mantissa.spare_capacity_mut();
    let tables = Tables::new(classes);
    let limit = _mm256_set1_epi32(MAX_PUT as i32);
    for (step, (weights, halves)) in steps.zip(halves.chunks_exact_mut(STEP)).enumerate() {
        // SAFETY: 64 bytes are read, 32 written.
        let words = [
            _mm256_loadu_si256(weights.as_ptr().cast()),
            _mm256_loadu_si256(weights.as_ptr().add(STEP).cast()),
        ];
        _mm256_storeu_si256(halves.as_mut_ptr().cast(), sign_mantissa(words));

        let looked_up = tables.look_up(exponents(words));
        let sums_of_8 = _mm256_sad_epu8(looked_up.lengths, _mm256_setzero_si256());
        let other_sums = _mm256_shuffle_epi32::<0b01_00_11_10>(sums_of_8);
        let sums_of_16 = _mm256_add_epi64(sums_of_8, other_sums);
        let too_long_16 = _mm256_cmpgt_epi32(sums_of_16, limit);
        let before = block.cursor.bit;
        if any_top_bit(_mm256_or_si256(looked_up.without_code, too_long_16)) {
            let too_long_8 = _mm256_cmpgt_epi32(sums_of_8, limit);
            let bits = low_u64(sums_of_16) + high_u64(sums_of_16);
            if bits > MAX_STEP_BITS
                || any_top_bit(_mm256_or_si256(looked_up.without_code, too_long_8))
            {
                block.put_each(codes, weights);
            } else {
                put_gaps::<3>(looked_up.lengths, block);
                put_8(join_8(&looked_up), sums_of_8, block);
            }
        } else {
            put_gaps::<2>(looked_up.lengths, block);
            let joined = join_8(&looked_up);
            let upper = _mm256_unpackhi_epi64(joined, joined);
            let joined = _mm256_or_si256(_mm256_sllv_epi64(joined, other_sums), upper);
            let mut cursor = block.cursor;
            cursor.put(
                &mut block.stream,
                low_u64(joined),
                low_u64(sums_of_16) as u32,
            );
            cursor.put(
                &mut block.stream,
                high_u64(joined),
                high_u64(sums_of_16) as u32,
            );
            block.cursor = cursor;
        }
        block.mark_chunk(codes, (weights, step * STEP), before, out.positions);
    }
    // SAFETY: every step has initialised its 32 bytes, and there was room for all steps.
    out.sign_mantissa.set_len(out.sign_mantissa.len() + full);

    let before = block.cursor.bit;
    out.sign_mantissa
        .extend(crate::bf16::words(rest).map(crate::bf16::sign_mantissa));
    block.put_each(codes, rest);
    block.mark_chunk(codes, (rest, full), before, out.positions);
}

/// [`Classes`] in both lanes.
struct Tables {
    base: __m256i,
    hole: __m256i,
    low: __m256i,
    high: __m256i,
    lengths: __m256i,
}

/// The codes of 32 weights, in order.
struct LookedUp {
    low: __m256i,
    high: __m256i,
    lengths: __m256i,
    /// Top bit set where the code must come from the full table.
    without_code: __m256i,
}

impl Tables {
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn new(classes: &Classes) -> Self {
        Self {
            base: _mm256_set1_epi8(classes.base as i8),
            hole: _mm256_set1_epi8(classes.hole as i8),
            low: in_both_lanes(classes.low),
            high: in_both_lanes(classes.high),
            lengths: in_both_lanes(classes.lengths),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn look_up(&self, exponents: __m256i) -> LookedUp {
        let others = _mm256_set1_epi8(WINDOW as i8);
        let class = _mm256_min_epu8(_mm256_sub_epi8(exponents, self.base), others);
        let lengths = _mm256_shuffle_epi8(self.lengths, class);
        let is_other = _mm256_cmpeq_epi8(class, others);
        let is_foreign = _mm256_andnot_si256(_mm256_cmpeq_epi8(exponents, self.hole), is_other);
        LookedUp {
            low: _mm256_shuffle_epi8(self.low, class),
            high: _mm256_shuffle_epi8(self.high, class),
            lengths,
            without_code: _mm256_or_si256(lengths, is_foreign),
        }
    }
}

/// The `sign_mantissa` bytes of 32 weights.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sign_mantissa(words: [__m256i; 2]) -> __m256i {
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
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn exponents(words: [__m256i; 2]) -> __m256i {
    let mut exponents = words;
    for words in &mut exponents {
        *words = _mm256_srli_epi16::<8>(_mm256_add_epi16(*words, *words));
    }
    in_order(_mm256_packus_epi16(exponents[0], exponents[1]))
}

/// Undoes the lanes of a pack.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn in_order(packed: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
}

/// Joins the codes of 8 neighbours; right wherever these have at most 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn join_8(codes: &LookedUp) -> __m256i {
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

/// The gaps of the up to `N` windows that 32 codes reach: 2 where these have at most 114 bits, 3 where [`MAX_STEP_BITS`].
#[inline]
#[target_feature(enable = "avx2,bmi1")]
unsafe fn put_gaps<const N: usize>(lengths: __m256i, block: &mut Block) {
    let bit = block.cursor.bit;
    let ends = _mm256_add_epi8(
        running_sum(lengths),
        _mm256_set1_epi8((bit % WINDOW_BITS as usize) as i8),
    );
    // Byte 32, where no code reaches a window, is only ever read for a store that is overwritten.
    let mut bytes = [0u8; 2 * STEP];
    // SAFETY: there is room for 32 bytes.
    _mm256_storeu_si256(bytes.as_mut_ptr().cast(), ends);
    // The two top bits of an end count windows.
    let doubled = _mm256_slli_epi16::<1>(ends);
    let reached = [
        _mm256_or_si256(ends, doubled),
        ends,
        _mm256_and_si256(ends, doubled),
    ];
    let window = bit / WINDOW_BITS as usize;
    for (next, ends) in reached.into_iter().take(N).enumerate() {
        let first = _mm256_movemask_epi8(ends).trailing_zeros() as usize;
        block.gaps[window + 1 + next] = bytes[first] % WINDOW_BITS as u8;
    }
}

/// For each of 32 bytes, the sum of it and those before.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn running_sum(bytes: __m256i) -> __m256i {
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

/// Puts 32 codes, joined by 8; `sums` are the bits of each 8, at most [`MAX_PUT`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,movbe")]
unsafe fn put_8(joined: __m256i, sums: __m256i, block: &mut Block) {
    let mut cursor = block.cursor;
    let [joined, sums] = [joined, sums].map(|vector| {
        let mut parts = [0u64; 4];
        // SAFETY: there is room for 32 bytes.
        _mm256_storeu_si256(parts.as_mut_ptr().cast(), vector);
        parts
    });
    for (value, bits) in joined.into_iter().zip(sums) {
        cursor.put(&mut block.stream, value, bits as u32);
    }
    block.cursor = cursor;
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn in_both_lanes(bytes: [u8; 16]) -> __m256i {
    // SAFETY: 16 bytes are read.
    _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast()))
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn any_top_bit(bytes: __m256i) -> bool {
    _mm256_movemask_epi8(bytes) != 0
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn low_u64(vector: __m256i) -> u64 {
    _mm256_extract_epi64::<0>(vector) as u64
}

/// The first of the upper lane.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn high_u64(vector: __m256i) -> u64 {
    _mm256_extract_epi64::<2>(vector) as u64
}
