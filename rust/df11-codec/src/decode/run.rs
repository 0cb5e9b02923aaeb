//! A run whose slices are long enough, and access to them by chunk and window.

use super::{ChunkRun, Mismatch, MismatchKind};
use crate::{
    bits,
    limits::{CHUNK_BYTES, GAP_BYTES_PER_CHUNK, MAX_UNIT_WEIGHTS, WINDOWS_PER_CHUNK},
};

/// Windows in a chunk, as an index.
pub const WINDOWS: usize = WINDOWS_PER_CHUNK as usize;

/// Bytes of a chunk and what is loaded with its last code.
const COPIED_BYTES: usize = CHUNK_BYTES as usize + 8;

/// Checked slices of a run.
pub struct Slices<'a> {
    pub first_chunk: u64,
    /// Chunks in the run.
    pub chunks: usize,
    /// The run's last chunk is the unit's.
    pub ends_unit: bool,
    stream: &'a [u8],
    gaps: &'a [u8],
    /// 4 bytes an entry.
    positions: &'a [u8],
}

impl<'a> Slices<'a> {
    /// Finds out how many chunks the run has and checks that every slice covers them.
    pub fn new(run: &ChunkRun<'a>) -> Result<Self, Mismatch> {
        let truncated = |chunk| Mismatch::new(MismatchKind::Truncated, chunk);
        if run.unit_bytes > MAX_UNIT_WEIGHTS || run.unit_weights > MAX_UNIT_WEIGHTS {
            return Err(Mismatch::new(MismatchKind::Length, MAX_UNIT_WEIGHTS));
        }
        let remaining = run
            .unit_bytes
            .div_ceil(CHUNK_BYTES)
            .saturating_sub(run.first_chunk) as usize;
        let entries = run.output_positions.len() / 4;
        if remaining == 0 || entries == 0 {
            return Err(truncated(run.first_chunk));
        }
        // As many entries as chunks to the unit's end: that end, one entry short because the last chunk is empty, or all but the last
        // chunk. Only the former ends with N and has the gaps of all chunks. Where both fit, the chunk more or less has no weights.
        let gap_chunks = run.gaps.len() / GAP_BYTES_PER_CHUNK as usize;
        let ends_with_n = entry(run.output_positions, entries - 1) == Some(run.unit_weights);
        let is_short_end = entries == remaining && ends_with_n && gap_chunks >= remaining;
        let chunks = if is_short_end {
            remaining
        } else {
            (entries - 1).min(remaining)
        };
        let ends_unit = chunks == remaining;

        // Bytes past B do not exist for the kernel, whatever the slice holds.
        let stream_left = (run.unit_bytes - run.first_chunk * CHUNK_BYTES) as usize;
        let stream = &run.encoded_exponent[..run.encoded_exponent.len().min(stream_left)];
        let stream_needed = (chunks * CHUNK_BYTES as usize + 4).min(stream_left);
        let gaps_needed = chunks * GAP_BYTES_PER_CHUNK as usize + usize::from(!ends_unit);
        if chunks == 0 || stream.len() < stream_needed || run.gaps.len() < gaps_needed {
            let whole = (stream.len() / CHUNK_BYTES as usize)
                .min(gap_chunks)
                .min(chunks.saturating_sub(1));
            return Err(truncated(run.first_chunk + whole as u64));
        }
        Ok(Self {
            first_chunk: run.first_chunk,
            chunks,
            ends_unit,
            stream,
            gaps: run.gaps,
            positions: run.output_positions,
        })
    }

    /// Index in the unit of the run's chunk `chunk`.
    pub fn chunk_index(&self, chunk: usize) -> u64 {
        self.first_chunk + chunk as u64
    }

    /// Index in the unit of the run's window `window`.
    pub fn window_index(&self, window: usize) -> u64 {
        self.first_chunk * WINDOWS_PER_CHUNK + window as u64
    }

    /// The bits of a window and the 32 behind it.
    pub fn window(&self, window: usize) -> (u64, u32) {
        bits::window_at(self.stream, window * 8)
    }

    /// Copies a chunk's bytes, and those behind that its last codes may reach, into a buffer that has room for them. Zeros stand behind.
    pub fn copy_chunk(&self, chunk: usize, buffer: &mut [u8]) {
        let bytes = self.stream.get(chunk * CHUNK_BYTES as usize..);
        let bytes = bytes.unwrap_or_default();
        let (chunk, behind) = buffer.split_at_mut(COPIED_BYTES.min(bytes.len()));
        chunk.copy_from_slice(&bytes[..chunk.len()]);
        behind[..COPIED_BYTES - chunk.len()].fill(0);
    }

    /// The packed gaps of a chunk.
    pub fn chunk_gaps(&self, chunk: usize) -> &'a [u8] {
        let bytes = GAP_BYTES_PER_CHUNK as usize;
        self.gaps
            .get(bytes * chunk..bytes * (chunk + 1))
            .unwrap_or_default()
    }

    /// The stored gap of a window.
    pub fn gap(&self, window: usize) -> u8 {
        bits::gap_at(self.gaps, window)
    }

    /// The stored position at which a chunk starts, or the run ends where `chunk` is [`Self::chunks`]. `None` only for the end
    /// of the unit.
    pub fn position(&self, chunk: usize) -> Option<u64> {
        entry(self.positions, chunk)
    }
}

/// Entry of a u32 little-endian tensor.
fn entry(tensor: &[u8], index: usize) -> Option<u64> {
    let bytes = tensor.get(4 * index..)?.first_chunk()?;
    Some(u64::from(u32::from_le_bytes(*bytes)))
}
