//! Output of the fast encoders: a block of weights at a time, in buffers of fixed size.
//!
//! A block's bits and gaps are collected here and then appended to the piece's tensors. So a kernel knows its buffers' sizes at compile
//! time, the piece's buffers grow by what was really written, and nothing is filled with zeros first.

// These are the innermost steps; they must become part of their caller and of what its processor can do.
#![allow(clippy::inline_always)]

use super::{Input, Output};
use crate::{
    bf16,
    codebook::Code,
    limits::{CHUNK_BITS, MAX_CODE_BITS, WINDOW_BITS, WINDOWS_PER_CHUNK},
};

/// Most weights of a block.
pub const BLOCK_WEIGHTS: usize = 2048;
/// The longest codes, after less than a window of the block before; and a last store of 8 bytes.
pub const STREAM_BYTES: usize = BLOCK_WEIGHTS * MAX_CODE_BITS as usize / 8 + 16;
/// A gap for each window of that; and three stores for windows that the block does not reach.
pub const GAPS: usize = STREAM_BYTES / 8 + 4;
/// Most bits that can be put at once: 7 bits may stand before them in a store of 8 bytes.
pub const MAX_PUT: u32 = 57;

/// Where the next code goes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Counted from the border of the window in which the block starts.
    pub bit: usize,
    /// The bits so far, right-aligned; all but the last seven may be wrong.
    pub pending: u64,
}

impl Cursor {
    /// Puts up to [`MAX_PUT`] bits. What is stored behind them is overwritten by the next.
    #[inline(always)]
    pub fn put(&mut self, stream: &mut [u8; STREAM_BYTES], value: u64, bits: u32) {
        self.pending = self.pending << bits | value;
        let shift = 64 - (self.bit % 8) as u32 - bits;
        let word = self.pending.wrapping_shl(shift);
        let at = self.bit / 8;
        if let Some(bytes) = stream.get_mut(at..at + 8) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        self.bit += bits as usize;
    }
}

/// The bits and gaps of a block.
pub struct Block {
    pub cursor: Cursor,
    pub stream: [u8; STREAM_BYTES],
    /// By window; that of the window in which the block starts belongs to the block before.
    ///
    /// A kernel may store gaps for the next windows at every step: only the last store before a border is right, and it stays.
    pub gaps: [u8; GAPS],
    /// Index in the unit of the block's first weight.
    pub first_weight: u64,
    /// Bit at which the next kernel chunk begins, counted as the cursor's.
    pub chunk_border: usize,
    /// The window in which the block starts.
    window: u64,
    /// Byte of the stream in which the block starts.
    first_byte: usize,
}

impl Block {
    fn new(input: &Input<'_>) -> Self {
        let bit = input.start.bit;
        let cursor = Cursor {
            bit: (bit % WINDOW_BITS) as usize,
            pending: 0,
        };
        let window = bit / WINDOW_BITS;
        Self {
            cursor,
            stream: [0; STREAM_BYTES],
            gaps: [0; GAPS],
            first_weight: input.start.weight,
            chunk_border: (CHUNK_BITS - WINDOW_BITS * (window % WINDOWS_PER_CHUNK)) as usize,
            window,
            first_byte: cursor.bit / 8,
        }
    }

    /// Puts the codes of some weights one by one, whatever their length. Positions are the caller's.
    pub fn put_each(&mut self, codes: &[Code; 256], weights: &[u8]) {
        let mut cursor = self.cursor;
        for word in bf16::words(weights) {
            let code = codes[usize::from(bf16::exponent(word))];
            let window = cursor.bit / WINDOW_BITS as usize;
            cursor.put(&mut self.stream, u64::from(code.value), code.bits);
            self.gaps[window + 1] = (cursor.bit % WINDOW_BITS as usize) as u8;
        }
        self.cursor = cursor;
    }

    /// Where codes put since bit `before` have reached the next kernel chunk, appends its position. `weights` are those put since,
    /// number `index` of the block the first: at most a thousand.
    #[inline(always)]
    pub fn mark_chunk(
        &mut self,
        codes: &[Code; 256],
        (weights, index): (&[u8], usize),
        before: usize,
        positions: &mut Vec<u8>,
    ) {
        if self.cursor.bit >= self.chunk_border {
            let reached = codes_to(codes, weights, self.chunk_border - before);
            self.open_chunk(index + reached, positions);
        }
    }

    /// Appends the position of the next kernel chunk: it begins with weight `index` of the block.
    #[cold]
    pub fn open_chunk(&mut self, index: usize, positions: &mut Vec<u8>) {
        let position = self.first_weight as u32 + index as u32;
        positions.extend_from_slice(&position.to_le_bytes());
        self.chunk_border += CHUNK_BITS as usize;
    }

    /// Appends the block to the tensors; the next one, of the weights behind these, starts where it ends.
    fn flush(&mut self, weights: usize, out: &mut Output<'_>) {
        let bit = self.cursor.bit;
        let windows = bit / WINDOW_BITS as usize;
        out.stream
            .extend_from_slice(&self.stream[self.first_byte..bit / 8]);
        out.gaps.extend_from_slice(&self.gaps[1..=windows]);
        let passed = windows * WINDOW_BITS as usize;
        self.window += windows as u64;
        self.cursor.bit -= passed;
        self.chunk_border -= passed;
        self.first_byte = self.cursor.bit / 8;
        self.first_weight += weights as u64;
    }

    /// Appends the bits of the last byte; returns the bit behind the last code.
    fn finish(&self, out: &mut Output<'_>) -> u64 {
        let bits = self.cursor.bit % 8;
        if bits > 0 {
            out.stream.push((self.cursor.pending << (8 - bits)) as u8);
        }
        self.window * WINDOW_BITS + self.cursor.bit as u64
    }
}

/// How many codes it takes to fill `bits` bits.
#[cold]
fn codes_to(codes: &[Code; 256], weights: &[u8], bits: usize) -> usize {
    let mut filled = 0;
    bf16::words(weights)
        .take_while(|&word| {
            let before = filled;
            filled += codes[usize::from(bf16::exponent(word))].bits as usize;
            before < bits
        })
        .count()
}

/// Encodes a piece block by block: `encode` puts the codes of a block's weights, appends their `sign_mantissa` and opens chunks.
/// Returns the bit behind the last code.
#[inline(always)]
pub fn encode_blocks(
    input: &Input<'_>,
    out: &mut Output<'_>,
    mut encode: impl FnMut(&[u8], &mut Block, &mut Output<'_>),
) -> u64 {
    let mut block = Block::new(input);
    for weights in input.weights.chunks(2 * BLOCK_WEIGHTS) {
        encode(weights, &mut block, out);
        block.flush(weights.len() / 2, out);
    }
    block.finish(out)
}
