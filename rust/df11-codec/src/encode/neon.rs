//! 16 weights a step with NEON.
//!
//! Codes and lengths come from byte table look-ups; neighbouring codes are joined pair by pair, to 8 weights in 64 bits and, where they
//! are short enough, to 16. Bits go to memory with one unaligned store for each joined code; a running sum of the 16 lengths gives the
//! gaps.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::wildcard_imports)]

mod vectors;

use std::arch::aarch64::*;

use super::{
    Input, Output,
    block::{Block, MAX_PUT, encode_blocks},
    classes::{Classes, NO_CODE, WINDOW},
};
use crate::{arm, bf16, codebook::Code, limits::WINDOW_BITS};
use vectors::{exponents, join_8, running_sum, sign_mantissa, sums_of_8};

/// Weights of a step.
const STEP: usize = 16;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    let classes = Classes::new(input.codes);
    if !classes.pay || !arm::has_neon() {
        return super::scalar::encode(input, out);
    }
    encode_blocks(input, out, |weights, block, out| {
        // SAFETY: the processor has the feature, as asked above.
        unsafe { encode_block(&classes, input.codes, weights, block, out) }
    })
}

/// # Safety
/// The processor must have NEON.
#[target_feature(enable = "neon")]
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
    for (step, (weights, halves)) in steps.zip(halves.chunks_exact_mut(STEP)).enumerate() {
        // SAFETY: 32 bytes are read, 16 written.
        let bytes = vld2q_u8(weights.as_ptr());
        vst1q_u8(halves.as_mut_ptr().cast(), sign_mantissa(bytes));

        let looked_up = tables.look_up(exponents(bytes));
        let sums = sums_of_8(looked_up.lengths);
        let before = block.cursor.bit;
        if sums[0] + sums[1] <= MAX_PUT {
            put_gaps::<1>(looked_up.lengths, block);
            let [first, second] = join_8(&looked_up);
            let joined = first << sums[1] | second;
            block
                .cursor
                .put(&mut block.stream, joined, sums[0] + sums[1]);
        } else if sums[0] <= MAX_PUT && sums[1] <= MAX_PUT {
            put_gaps::<2>(looked_up.lengths, block);
            for (joined, bits) in join_8(&looked_up).into_iter().zip(sums) {
                block.cursor.put(&mut block.stream, joined, bits);
            }
        } else {
            block.put_each(codes, weights);
        }
        block.mark_chunk(codes, (weights, step * STEP), before, out.positions);
    }
    // SAFETY: every step has initialised its 16 bytes, and there was room for all steps.
    out.sign_mantissa.set_len(out.sign_mantissa.len() + full);

    let before = block.cursor.bit;
    out.sign_mantissa
        .extend(bf16::words(rest).map(bf16::sign_mantissa));
    block.put_each(codes, rest);
    block.mark_chunk(codes, (rest, full), before, out.positions);
}

/// [`Classes`] in vectors.
struct Tables {
    base: uint8x16_t,
    hole: uint8x16_t,
    low: uint8x16_t,
    high: uint8x16_t,
    lengths: uint8x16_t,
}

/// The codes of 16 weights, in order.
struct LookedUp {
    low: uint8x16_t,
    high: uint8x16_t,
    /// [`NO_CODE`], or more, where the code must come from the full table: then no sum is short enough to be put.
    lengths: uint8x16_t,
}

impl Tables {
    /// # Safety
    /// The processor must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn new(classes: &Classes) -> Self {
        // SAFETY: 16 bytes are read from each table.
        Self {
            base: vdupq_n_u8(classes.base),
            hole: vdupq_n_u8(classes.hole),
            low: vld1q_u8(classes.low.as_ptr()),
            high: vld1q_u8(classes.high.as_ptr()),
            lengths: vld1q_u8(classes.lengths.as_ptr()),
        }
    }

    /// # Safety
    /// The processor must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn look_up(&self, exponents: uint8x16_t) -> LookedUp {
        let others = vdupq_n_u8(WINDOW as u8);
        let class = vminq_u8(vsubq_u8(exponents, self.base), others);
        let is_other = vceqq_u8(class, others);
        let is_foreign = vbicq_u8(is_other, vceqq_u8(exponents, self.hole));
        let without_code = vandq_u8(is_foreign, vdupq_n_u8(NO_CODE));
        LookedUp {
            low: vqtbl1q_u8(self.low, class),
            high: vqtbl1q_u8(self.high, class),
            lengths: vorrq_u8(vqtbl1q_u8(self.lengths, class), without_code),
        }
    }
}

/// The gaps of the up to `N` windows that 16 codes reach: 1 where these have at most [`MAX_PUT`] bits, 2 where twice that.
///
/// # Safety
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn put_gaps<const N: usize>(lengths: uint8x16_t, block: &mut Block) {
    const BORDER: u8 = WINDOW_BITS as u8;
    let window = block.cursor.bit / WINDOW_BITS as usize;
    let start = (block.cursor.bit % WINDOW_BITS as usize) as u8;
    let mut ends = vaddq_u8(running_sum(lengths), vdupq_n_u8(start));
    for next in 0..N {
        // Ends grow, and those before the border wrap to large numbers: the least is that of the code that reaches it. Where none does,
        // the store is overwritten.
        ends = vsubq_u8(ends, vdupq_n_u8(BORDER));
        block.gaps[window + 1 + next] = vminvq_u8(ends) % BORDER;
    }
}
