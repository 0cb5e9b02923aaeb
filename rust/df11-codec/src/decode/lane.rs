//! One chunk's decoding, several codes a look-up.
// These are the innermost steps; they must become part of their caller and of what its processor can do.
#![allow(clippy::inline_always)]

use super::{
    DecodeTables,
    run::WINDOWS,
    symbols::{Entry, Taken},
};
use crate::limits::{CHUNK_BITS, CHUNK_BYTES, WINDOW_BITS};

/// Look-ups between two loads of 8 bytes, of which 57 bits are sure to be of use.
pub const LOOK_UPS: usize = 4;
/// Most codes of these.
const MAX_CODES: usize = 5 * LOOK_UPS;

// Sizes are powers of two, and a store more, so that a mask keeps indices inside.
const STREAM_BYTES: usize = 2 * CHUNK_BYTES as usize;
const GAPS: usize = 2 * WINDOWS;
/// Codes have one bit at least.
pub const MAX_WEIGHTS: usize = CHUNK_BITS as usize;

/// A chunk's bytes and a few behind it; then zeros.
pub type Stream = [u8; STREAM_BYTES + 8];
/// The gaps that the codes say, by window of the chunk.
pub type Gaps = [u8; GAPS + 1];
/// Decoded exponents.
pub type Exponents = [u8; MAX_WEIGHTS + 8];

/// Where a lane is in its chunk.
#[derive(Clone, Copy, Default)]
pub struct Lane {
    /// Where the next code starts in the chunk.
    pub bit: usize,
    /// Weights decoded, and weights that the chunk has.
    pub decoded: usize,
    pub weights: usize,
}

impl Lane {
    /// Whether all codes of a round are the chunk's.
    #[inline(always)]
    pub fn has_round(&self) -> bool {
        self.decoded + MAX_CODES <= self.weights
    }

    /// The bits from the current one on, 57 at least.
    #[inline(always)]
    pub fn load(&self, stream: &Stream) -> u64 {
        let at = self.bit / 8 % STREAM_BYTES;
        let bytes = stream[at..].first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(bytes) << (self.bit % 8)
    }

    /// Begins a round where the lane is.
    #[inline(always)]
    pub fn begin(&self, stream: &Stream) -> Round {
        Round {
            buffer: self.load(stream),
            taken: Taken::codes_before(self.decoded),
            ..Round::default()
        }
    }

    /// Takes what a round has found, and where it came upon a code that is no part of a look-up, that one.
    ///
    /// The gap that it stores for the next window is right if its codes reach it, and they reach no further. If not, the next round that
    /// starts in this window stores another: only the right one stays.
    #[inline(always)]
    pub fn end(
        &mut self,
        round: &Round,
        tables: &DecodeTables,
        stream: &Stream,
        gaps: &mut Gaps,
        exponents: &mut Exponents,
    ) {
        gaps[self.bit / WINDOW_BITS as usize % GAPS + 1] = round.past(self.bit);
        self.decoded = round.taken.codes();
        self.bit += round.taken.bits();
        if round.last.is_none() {
            self.single(tables, stream, gaps, exponents);
        }
    }

    /// Takes one code of any length. One of length 0 stays where it is, so the chunk's end comes out wrong.
    #[inline(never)]
    pub fn single(
        &mut self,
        tables: &DecodeTables,
        stream: &Stream,
        gaps: &mut Gaps,
        exponents: &mut Exponents,
    ) {
        let (exponent, bits) = tables.next(self.load(stream)).unwrap_or_default();
        let window = self.bit / WINDOW_BITS as usize;
        self.bit += bits as usize;
        gaps[window % GAPS + 1] = (self.bit % WINDOW_BITS as usize) as u8;
        exponents[self.decoded % MAX_WEIGHTS] = exponent;
        self.decoded += 1;
    }
}

/// Some look-ups without a look back: the lane moves on when all are done.
#[derive(Clone, Copy, Default)]
pub struct Round {
    /// The bits to come, left-aligned.
    buffer: u64,
    /// What the lane and the look-ups have taken.
    taken: Taken,
    /// Bit `k` is set where a code ends `k + 1` bits behind the round's start.
    ends: u64,
    last: Entry,
}

impl Round {
    /// A look-up of the bits at the top of the buffer. One that decides nothing takes nothing, and then the others do not either.
    #[inline(always)]
    pub fn look_up(&mut self, tables: &DecodeTables, exponents: &mut Exponents) {
        let entry = tables.symbols.entry(self.buffer);
        let at = self.taken.codes() % MAX_WEIGHTS;
        exponents[at..at + 8].copy_from_slice(&entry.exponents());
        self.ends |= self.taken.behind(entry.ends());
        self.taken.add(entry);
        self.buffer = entry.shift(self.buffer);
        self.last = entry;
    }

    /// By how much the first code that ends at or behind the next window's border does so, where the round starts with bit `bit` of the
    /// chunk. Nonsense where no code reaches that border.
    #[inline(always)]
    fn past(&self, bit: usize) -> u8 {
        let before_border = !bit as u32 % WINDOW_BITS as u32;
        (self.ends >> before_border).trailing_zeros() as u8
    }
}
