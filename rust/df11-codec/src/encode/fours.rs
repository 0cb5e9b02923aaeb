//! 64 weights a step in plain Rust: sixteen look-ups of four codes each.

use super::{
    Input, Output,
    block::encode_blocks,
    classes::Classes,
    nibbles::classify,
    quads::{Joined, Quads},
    runs::{MAX_RUN, Runs, STEP, STEPS, put_steps},
};
use crate::bf16;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(
    input: &Input<'_>,
    out: &mut Output<'_>,
    quads: &Quads<'_>,
    classes: &Classes,
) -> u64 {
    let mut steps = [Runs::default(); STEPS];
    let codes = input.codes;
    encode_blocks(input, out, |weights, block, out| {
        out.sign_mantissa
            .extend(bf16::words(weights).map(bf16::sign_mantissa));
        let parts = weights.chunks_exact(2 * STEP);
        let (full, rest) = (parts.len(), parts.remainder());
        for (weights, runs) in parts.zip(&mut steps) {
            if let Some(weights) = weights.first_chunk() {
                join(quads, classes, weights, runs);
            }
        }
        put_steps(&steps[..full], weights, codes, block, out.positions);

        let before = block.cursor.bit;
        block.put_each(codes, rest);
        block.mark_chunk(codes, (rest, full * STEP), before, out.positions);
    })
}

/// Makes runs of 64 weights.
#[inline]
fn join(quads: &Quads<'_>, classes: &Classes, weights: &[u8; 2 * STEP], runs: &mut Runs) {
    let (pairs, have_classes) = classify(classes, weights);
    let mut fours = [0; STEP / 4];
    for (four, pairs) in fours.iter_mut().zip(pairs.chunks_exact(2)) {
        *four = u16::from_le_bytes([pairs[0], pairs[1]]);
    }
    let mut longest = 0;
    for (run, four) in fours.chunks_exact(4).enumerate() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| quads.get(four[at]));
        let joined = a.followed_by(b).followed_by(c.followed_by(d));
        longest = longest.max(joined.bits);
        store(joined, run, runs);
    }
    runs.count = match have_classes {
        true if longest <= MAX_RUN.into() => 4,
        true => join_eights(quads, fours, runs),
        false => 0,
    };
}

/// Makes runs of eight weights. Returns how many, none where four of them have no joined codes.
#[cold]
fn join_eights(quads: &Quads<'_>, fours: [u16; STEP / 4], runs: &mut Runs) -> usize {
    let mut longest = 0;
    for (run, four) in fours.chunks_exact(2).enumerate() {
        let joined = quads.get(four[0]).followed_by(quads.get(four[1]));
        longest = longest.max(joined.bits);
        store(joined, run, runs);
    }
    if longest > MAX_RUN.into() { 0 } else { 8 }
}

#[inline]
fn store(joined: Joined, run: usize, runs: &mut Runs) {
    // A longer run is not used.
    let free = 64u32.wrapping_sub(joined.bits);
    runs.codes[run] = joined.codes.wrapping_shl(free);
    runs.ends[run] = joined.ends.wrapping_shl(free);
    runs.bits[run] = joined.bits.into();
}
