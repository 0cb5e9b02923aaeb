//! Joined codes, left-aligned, and where the next ones go.
// These are the innermost steps; they must become part of their caller and of what its processor can do.
#![allow(clippy::inline_always)]

use super::block::{BLOCK_WEIGHTS, Block, Cursor};
use crate::{codebook::Code, limits::WINDOW_BITS};

/// Weights of a step.
pub const STEP: usize = 64;
/// Most steps of a block.
pub const STEPS: usize = BLOCK_WEIGHTS / STEP;
/// Most bits of a run: so it reaches one window border at most.
pub const MAX_RUN: u8 = WINDOW_BITS as u8 - 1;

/// Runs of neighbouring codes that a step's weights give.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// The codes of each run, joined and left-aligned; zeros stand behind them.
    pub codes: [u64; 8],
    /// The same with nothing set but the last bit of each code.
    pub ends: [u64; 8],
    /// How many bits each has: 8 to [`MAX_RUN`].
    pub bits: [u64; 8],
    /// How many runs: four of 16 codes, eight of 8, or none where these codes must be put one by one.
    pub count: usize,
}

/// A [`Cursor`] for runs.
#[derive(Clone, Copy, Debug)]
pub struct RunCursor {
    /// As the cursor's.
    pub bit: usize,
    /// The bits before it in its byte, left-aligned; zeros behind them.
    begun: u64,
}

impl From<Cursor> for RunCursor {
    fn from(cursor: Cursor) -> Self {
        let begun = cursor.pending << 1 << (63 - cursor.bit % 8);
        Self {
            bit: cursor.bit,
            begun,
        }
    }
}

impl From<RunCursor> for Cursor {
    fn from(cursor: RunCursor) -> Self {
        let pending = cursor.begun >> 1 >> (63 - cursor.bit % 8);
        Self {
            bit: cursor.bit,
            pending,
        }
    }
}

impl RunCursor {
    /// Puts a run, and a gap for the next window: the right one if the run reaches it.
    #[inline(always)]
    pub fn put(&mut self, codes: u64, ends: u64, bits: u64, block: &mut Block) {
        let (byte, window) = (self.bit / 8, self.bit / WINDOW_BITS as usize);
        // Bits that are lost behind the 64th are all in the next `begun`.
        let word = self.begun | codes >> (self.bit % 8);
        if let Some(bytes) = block.stream.get_mut(byte..byte + 8) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        // Shifts out the bits before the border's last one.
        let from_border = ends.wrapping_shl(!self.bit as u32);
        if let Some(gap) = block.gaps.get_mut(window + 1) {
            *gap = from_border.leading_zeros() as u8;
        }
        self.bit += bits as usize;
        self.begun = codes.wrapping_shl(bits as u32 - (self.bit % 8) as u32);
    }
}

/// Puts the codes of all steps and opens chunks. `weights` are the block's, `steps` the runs of all of them but a rest.
#[inline(always)]
pub fn put_steps(
    steps: &[Runs],
    weights: &[u8],
    codes: &[Code; 256],
    block: &mut Block,
    positions: &mut Vec<u8>,
) {
    let mut cursor = RunCursor::from(block.cursor);
    for (step, (runs, weights)) in steps.iter().zip(weights.chunks_exact(2 * STEP)).enumerate() {
        let before = cursor.bit;
        // The usual count first, known to the compiler.
        if runs.count == 4 {
            for run in 0..4 {
                cursor.put(runs.codes[run], runs.ends[run], runs.bits[run], block);
            }
        } else if runs.count == 8 {
            for run in 0..8 {
                cursor.put(runs.codes[run], runs.ends[run], runs.bits[run], block);
            }
        } else {
            block.cursor = cursor.into();
            block.put_each(codes, weights);
            cursor = block.cursor.into();
        }
        if cursor.bit >= block.chunk_border {
            block.cursor = cursor.into();
            block.mark_chunk(codes, (weights, step * STEP), before, positions);
        }
    }
    block.cursor = cursor.into();
}
