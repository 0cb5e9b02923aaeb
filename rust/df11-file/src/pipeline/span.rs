//! The part of a unit, or of a passthrough tensor, that is in memory at a time.

use std::mem;

use crossbeam_channel::{Receiver, Sender, bounded};
use df11_codec::ExponentHistogram;

use crate::{
    budget::{PIECE_WEIGHTS, SPANS},
    error::Result,
    pipeline::no_memory,
};

/// What a span is filled into.
#[derive(Default)]
pub struct SpanMemory {
    /// BF16 weights of a unit, or the bytes of a passthrough tensor as the result holds them.
    pub bytes: Vec<u8>,
    /// Exponent counts of each [`PIECE_WEIGHTS`] weights; none where they were not counted.
    pub counts: Vec<ExponentHistogram>,
}

/// A filled span. Tasks share it; when the last is done with it, its memory goes back to the reader.
pub struct Span {
    memory: SpanMemory,
    home: Sender<SpanMemory>,
}

impl Span {
    /// A span in memory that came from `home`.
    pub fn new(memory: SpanMemory, home: Sender<SpanMemory>) -> Self {
        Self { memory, home }
    }

    /// What the reader fills.
    pub fn memory(&mut self) -> &mut SpanMemory {
        &mut self.memory
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes
    }

    /// Its pieces.
    pub fn pieces(&self) -> std::slice::Chunks<'_, u8> {
        self.memory.bytes.chunks(PIECE_WEIGHTS as usize * 2)
    }

    /// Its counts.
    pub fn counts(&self) -> &[ExponentHistogram] {
        &self.memory.counts
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // There is room for all; only a reader that has ended does not take it.
        let _ = self.home.send(mem::take(&mut self.memory));
    }
}

/// The free memory of all spans, each at once as large as any load: growing, it would take up to twice that.
///
/// # Errors
/// `E_NO_MEMORY`.
pub fn all_memory(longest: usize) -> Result<(Sender<SpanMemory>, Receiver<SpanMemory>)> {
    let (home, free) = bounded(SPANS);
    for _ in 0..SPANS {
        let mut memory = SpanMemory::default();
        let pieces = longest.div_ceil(PIECE_WEIGHTS as usize * 2);
        memory
            .bytes
            .try_reserve_exact(longest)
            .and_then(|()| memory.counts.try_reserve_exact(pieces))
            .map_err(|error| no_memory(&error))?;
        let _ = home.send(memory);
    }
    Ok((home, free))
}
