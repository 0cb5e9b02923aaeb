//! The part of a unit, or of a passthrough tensor, that is in memory at a time.

use std::{
    io, mem,
    ops::{Deref, DerefMut},
};

use crossbeam_channel::Sender;
use df11_codec::ExponentHistogram;
use memmap2::MmapMut;

use crate::{budget::PIECE_WEIGHTS, system};

/// What a span is filled into.
#[derive(Default)]
pub struct SpanMemory {
    /// BF16 weights of a unit, or the bytes of a passthrough tensor as the result holds them.
    pub bytes: Block,
    /// Exponent counts of each [`PIECE_WEIGHTS`] weights; none where they were not counted.
    pub counts: Vec<ExponentHistogram>,
}

/// Bytes in a block of memory that never grows.
#[derive(Default)]
pub struct Block {
    memory: Option<MmapMut>,
    length: usize,
}

impl Block {
    /// Room for so many bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn with_room(bytes: usize) -> io::Result<Self> {
        Ok(Self {
            memory: Some(system::block_of_memory(bytes)?),
            length: 0,
        })
    }

    /// Holds so many bytes from now on, whatever they are.
    ///
    /// # Errors
    /// Those of the system, where there was less room.
    pub fn resize(&mut self, bytes: usize) -> io::Result<()> {
        if self
            .memory
            .as_ref()
            .is_none_or(|memory| memory.len() < bytes)
        {
            *self = Self::with_room(bytes)?;
        }
        self.length = bytes;
        Ok(())
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory
            .as_ref()
            .map_or(&[], |memory| &memory[..self.length])
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(memory) => &mut memory[..self.length],
            None => &mut [],
        }
    }
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
