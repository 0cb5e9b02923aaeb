//! Eight weights a step in plain Rust: four look-ups of two codes each, and one store. Where four codes can be looked up at once,
//! that is done instead.

use super::{
    Input, Output,
    block::{Block, GAPS, MAX_PUT, encode_blocks},
    classes::Classes,
    fours,
    pairs::{Pair, Pairs},
};
use crate::{bf16, codebook::Code, limits::WINDOW_BITS};

/// Weights of a step.
const STEP: usize = 8;
const WINDOW: usize = WINDOW_BITS as usize;
/// Weights of a piece for which a table of quads is made: that takes about as long as encoding so many.
const MANY_WEIGHTS: usize = 1 << 16;

/// Encodes a piece; returns the bit behind its last code.
pub fn encode(input: &Input<'_>, out: &mut Output<'_>) -> u64 {
    if is_flat(input.codes) {
        return super::reference::encode(input, out);
    }
    if let Some(end) = encode_by_fours(input, out) {
        return end;
    }
    let mut table = std::mem::take(out.pairs);
    let end = match table.of(input.codes) {
        Some(pairs) => {
            let mut marks = [0; GAPS];
            encode_blocks(input, out, |weights, block, out| {
                encode_block(&pairs, input.codes, weights, &mut marks, block, out);
            })
        }
        None => super::reference::encode(input, out),
    };
    *out.pairs = table;
    end
}

/// [`fours::encode`], where nearly all weights have a class and the table is there or the piece large enough to make it.
fn encode_by_fours(input: &Input<'_>, out: &mut Output<'_>) -> Option<u64> {
    if input.weights.len() < 2 * MANY_WEIGHTS && !out.quads.is_for(input.codes) {
        return None;
    }
    let classes = Classes::new(input.codes);
    if !classes.pay {
        return None;
    }
    let mut table = std::mem::take(out.quads);
    let quads = table.of(input.codes, &classes);
    let end = quads.map(|quads| fours::encode(input, out, &quads, &classes));
    *out.quads = table;
    end
}

/// Whether more than half of the weights have codes of more than 5 bits, by the code's own shares. Then the pairs that occur are so many
/// that a look-up waits for the second-level cache, and there is little to join.
fn is_flat(codes: &[Code; 256]) -> bool {
    let short = codes.iter().filter(|code| (1..=5).contains(&code.bits));
    short.map(|code| 32 >> code.bits).sum::<u32>() < 16
}

/// Where a step starts: index of its weight in the block, and the bit in its window.
///
/// Each step leaves a mark for the next window, so that the last one, the one that reaches it, stays. The gaps are found afterwards.
type Mark = u32;

fn mark(index: usize, bit: usize) -> Mark {
    (index * WINDOW + bit % WINDOW) as Mark
}

fn encode_block(
    pairs: &Pairs<'_>,
    codes: &[Code; 256],
    weights: &[u8],
    marks: &mut [Mark; GAPS],
    block: &mut Block,
    out: &mut Output<'_>,
) {
    out.sign_mantissa
        .extend(bf16::words(weights).map(bf16::sign_mantissa));
    let mut cursor = block.cursor;
    for (step, eight) in weights.chunks(2 * STEP).enumerate() {
        if let Some(word) = eight.first_chunk() {
            let word = u128::from_le_bytes(*word);
            let [a, b] = pairs.of_four(word as u64);
            let [c, d] = pairs.of_four((word >> 64) as u64);
            let bits = Pair::bits_of([a, b, c, d]);
            if bits <= MAX_PUT {
                marks[cursor.bit / WINDOW + 1] = mark(step * STEP, cursor.bit);
                let first = a.value() << b.bits() | b.value();
                let second = c.value() << d.bits() | d.value();
                let joined = first << (c.bits() + d.bits()) | second;
                cursor.put(&mut block.stream, joined, bits);
                continue;
            }
        }
        for (index, word) in (step * STEP..).zip(bf16::words(eight)) {
            let code = codes[usize::from(bf16::exponent(word))];
            marks[cursor.bit / WINDOW + 1] = mark(index, cursor.bit);
            cursor.put(&mut block.stream, u64::from(code.value), code.bits);
        }
    }
    block.cursor = cursor;
    let windows = 1..=cursor.bit / WINDOW;
    for (window, &mark) in windows.zip(&marks[1..]) {
        let (index, end) = find_border(codes, weights, mark);
        block.gaps[window] = (end % WINDOW) as u8;
        if window * WINDOW == block.chunk_border {
            block.open_chunk(index, out.positions);
        }
    }
}

/// Follows the at most eight codes of a step to the border that they reach: the index of the weight behind it, and where its code
/// starts, counted from the window before. Without a branch for each code, since none could be predicted.
#[inline]
fn find_border(codes: &[Code; 256], weights: &[u8], mark: Mark) -> (usize, usize) {
    let index = mark as usize / WINDOW;
    let mut end = mark as usize % WINDOW;
    let (mut reached, mut count) = (0, 0);
    for word in bf16::words(&weights[2 * index..]).take(STEP) {
        let is_before = end < WINDOW;
        end += codes[usize::from(bf16::exponent(word))].bits as usize;
        reached = if is_before { end } else { reached };
        count += usize::from(is_before);
    }
    (index + count, reached)
}
