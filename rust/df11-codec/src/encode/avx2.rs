//! 32 weights a step with AVX2.
//!
//! Codes and lengths come from byte shuffles; neighbouring codes are joined pair by pair, to 8 weights in 64 bits and, where they are
//! short enough, to 16. Bits go to memory with one unaligned store for each joined code; a running sum of the 32 lengths gives the gaps.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::cast_possible_wrap, clippy::wildcard_imports)]

mod vectors;

use std::arch::x86_64::*;

use super::{
    Input, Output,
    block::{Block, MAX_PUT, encode_blocks},
    classes::{Classes, WINDOW},
};
use crate::{codebook::Code, limits::WINDOW_BITS, x86};
use vectors::{
    any_top_bit, exponents, high_u64, in_both_lanes, join_8, low_u64, running_sum, sign_mantissa,
};

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
    /// # Safety
    /// The processor must have the features below.
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

    /// # Safety
    /// The processor must have the features below.
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

/// The gaps of the up to `N` windows that 32 codes reach: 2 where these have at most 114 bits, 3 where [`MAX_STEP_BITS`].
///
/// # Safety
/// The processor must have the features below.
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

/// Puts 32 codes, joined by 8; `sums` are the bits of each 8, at most [`MAX_PUT`].
///
/// # Safety
/// The processor must have the features below.
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
