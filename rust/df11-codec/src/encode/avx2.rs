//! 64 weights a step with AVX2.
//!
//! Codes and lengths come from byte shuffles; neighbouring codes are joined pair by pair, to 8 weights in 64 bits and, where they are
//! short enough, to 16. Marks of the codes' last bits are joined the same way: they give the gaps.
#![allow(unsafe_code)]
// Before Rust 1.87 every intrinsic is unsafe, since then only those that take a pointer.
#![allow(unsafe_op_in_unsafe_fn)]

mod join;
mod tables;
mod vectors;

use super::{
    Input, Output,
    block::{Block, encode_blocks},
    classes::Classes,
    runs::{Runs, STEP, STEPS, put_steps},
};
use crate::{bf16, codebook::Code, x86};
use join::Octets;
use tables::Tables;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    let classes = Classes::new(input.codes);
    if !classes.pay || !x86::has_avx2() {
        return super::scalar::encode(input, out);
    }
    let mut steps = [Runs::default(); STEPS];
    // SAFETY: the processor has the features, as asked above; and below.
    let tables = unsafe { Tables::new(&classes) };
    encode_blocks(input, out, |weights, block, out| unsafe {
        encode_block(&tables, input.codes, weights, &mut steps, block, out);
    })
}

/// First all vectors, then all stores, so that the latter need not wait for the former.
///
/// # Safety
/// The processor must have the features of [`x86::has_avx2`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn encode_block(
    tables: &Tables,
    codes: &[Code; 256],
    weights: &[u8],
    steps: &mut [Runs; STEPS],
    block: &mut Block,
    out: &mut Output<'_>,
) {
    let full = weights.len() / (2 * STEP);
    out.sign_mantissa.reserve(weights.len() / 2);
    let halves = out.sign_mantissa.spare_capacity_mut();
    let parts = weights.chunks_exact(2 * STEP);
    let rest = parts.remainder();
    for ((weights, halves), runs) in parts.zip(halves.chunks_exact_mut(STEP)).zip(&mut *steps) {
        // SAFETY: 128 bytes are read, 64 written.
        join(tables, weights.as_ptr(), halves.as_mut_ptr().cast(), runs);
    }
    // SAFETY: every step has initialised its 64 bytes, and there was room for all steps.
    out.sign_mantissa
        .set_len(out.sign_mantissa.len() + full * STEP);
    put_steps(&steps[..full], weights, codes, block, out.positions);

    let before = block.cursor.bit;
    out.sign_mantissa
        .extend(bf16::words(rest).map(bf16::sign_mantissa));
    block.put_each(codes, rest);
    block.mark_chunk(codes, (rest, full * STEP), before, out.positions);
}

/// Makes runs of 64 weights, and their `sign_mantissa` bytes.
///
/// # Safety
/// The processor must have the features below, `weights` point to 128 bytes, and `sign_mantissa` to room for 64.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn join(tables: &Tables, weights: *const u8, sign_mantissa: *mut u8, runs: &mut Runs) {
    let orders = &tables.orders;
    let bytes = vectors::load(weights, orders);
    vectors::store_sign_mantissa(bytes, orders, sign_mantissa);
    let looked_up = tables.look_up(bytes);
    let octets = Octets::new(&looked_up, orders);
    let sixteens = octets.by_two(orders);
    if looked_up.is_fine(sixteens.too_long()) {
        sixteens.store(orders, runs);
    } else if looked_up.is_fine(octets.too_long()) {
        octets.store(orders, runs);
    } else {
        runs.count = 0;
    }
}
