//! One chunk's decoding, several codes a look-up.
// These are the innermost steps; they must become part of their caller and of what its processor can do.
#![allow(clippy::inline_always)]

use super::{DecodeTables, run::WINDOWS, symbols::Entry};
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

    /// A look-up of the bits at the top of `buffer`, which then moves on.
    #[inline(always)]
    pub fn look_up(
        &mut self,
        buffer: &mut u64,
        tables: &DecodeTables,
        stream: &Stream,
        gaps: &mut Gaps,
        exponents: &mut Exponents,
    ) {
        let entry = tables.symbols.entry(*buffer);
        if entry.codes() == 0 {
            self.single(tables, stream, gaps, exponents);
            *buffer = self.load(stream);
            return;
        }
        self.take(entry, gaps, exponents);
        *buffer = entry.shift(*buffer);
    }

    /// Takes the codes of a look-up.
    ///
    /// The gap that it stores for the next window is right if these codes reach it. If not, the next look-up of this window stores
    /// another: only the right one stays.
    #[inline(always)]
    fn take(&mut self, entry: Entry, gaps: &mut Gaps, exponents: &mut Exponents) {
        gaps[self.bit / WINDOW_BITS as usize % GAPS + 1] = entry.past(self.bit.wrapping_neg() % 64);
        let at = self.decoded % MAX_WEIGHTS;
        exponents[at..at + 8].copy_from_slice(&entry.exponents());
        self.decoded += entry.codes();
        self.bit += entry.bits();
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
