//! 64 weights a step with AVX-512, where it shuffles bytes too (VBMI, VBMI2).
//!
//! Codes and lengths come from shuffles; rotations join neighbouring codes to 8 weights in 64 bits. Sums of the lengths say where codes
//! end: so all gaps of a step are found at once, and its bits take four stores.
#![allow(unsafe_code)]
// The build script leaves this module out where the compiler is older than these intrinsics.
#![allow(clippy::incompatible_msrv)]

mod octets;
mod put;
mod tables;

use super::{
    Input, Output,
    block::{Block, encode_blocks},
    runs::{STEP, STEPS},
    slots::Slots,
};
use crate::{bf16, codebook::Code, x86};
use octets::{Octets, Words};
use put::OctetCursor;
use tables::Tables;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    let slots = Slots::new(input.codes);
    if !slots.pay || !x86::has_avx512_bytes() {
        return super::avx2::encode(input, out);
    }
    // SAFETY: the processor has the features, as asked above; and below.
    let (tables, mut steps) = unsafe { (Tables::new(&slots), [Octets::none(); STEPS]) };
    encode_blocks(input, out, |weights, block, out| unsafe {
        encode_block(&tables, input.codes, weights, &mut steps, block, out);
    })
}

/// First what does not depend on where the codes go, then the rest: a step takes so long from its first look-up to its last store that
/// with both in one loop a processor has no room for enough steps at a time.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,lzcnt,popcnt,movbe"
)]
fn encode_block(
    tables: &Tables,
    codes: &[Code; 256],
    weights: &[u8],
    steps: &mut [Octets; STEPS],
    block: &mut Block,
    out: &mut Output<'_>,
) {
    let (parts, rest) = weights.as_chunks();
    let steps = &mut steps[..parts.len()];
    out.sign_mantissa.reserve(weights.len() / 2);
    let (halves, _) = out.sign_mantissa.spare_capacity_mut().as_chunks_mut();
    for ((weights, halves), octets) in parts.iter().zip(halves).zip(&mut *steps) {
        let words = Words::load(weights);
        words.store_sign_mantissa(tables, halves);
        *octets = Octets::new(&words, tables);
    }
    // SAFETY: every step has initialised its 64 bytes, and there was room for all steps.
    unsafe {
        out.sign_mantissa
            .set_len(out.sign_mantissa.len() + parts.len() * STEP);
    }

    let mut cursor = OctetCursor::at(block.cursor);
    for (step, (weights, octets)) in parts.iter().zip(steps).enumerate() {
        let before = cursor.bit;
        if octets.total > 0 {
            cursor.put(octets, tables, block);
        } else {
            block.cursor = cursor.cursor();
            block.put_each(codes, weights);
            cursor = OctetCursor::at(block.cursor);
        }
        if cursor.bit >= block.chunk_border {
            block.cursor = cursor.cursor();
            block.mark_chunk(codes, (weights, step * STEP), before, out.positions);
        }
    }
    block.cursor = cursor.cursor();

    let before = block.cursor.bit;
    out.sign_mantissa
        .extend(bf16::words(rest).map(bf16::sign_mantissa));
    block.put_each(codes, rest);
    block.mark_chunk(codes, (rest, parts.len() * STEP), before, out.positions);
}
