//! The strict walk: every weight, gap and position of a run, its end, and where the kernel goes behind it.

use super::{
    CheckBuffers, ChunkRun, DecodeTables, Mismatch, MismatchKind,
    lanes::EqualChunks,
    run::{Slices, WINDOWS},
};
use crate::{
    bf16,
    limits::{CHUNK_BITS, WINDOW_BITS},
};

impl DecodeTables {
    /// Decodes the run and compares it with `source` (little-endian BF16 of the same weights), rebuilding every gap of the run (and the
    /// first of the next chunk), every position, the stream's end, and the kernel's walk behind it.
    ///
    /// The first gap and the first position of a run that does not begin the unit are taken as they are: the run before rebuilds them.
    ///
    /// What does not change the decoded weights is not found: the bits behind the last code, and a bit string that belongs to EOF
    /// alone where the neighbour's code that it decodes as was meant.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn check_chunks(&self, run: &ChunkRun<'_>, source: &[u8]) -> Result<(), Mismatch> {
        self.check_chunks_with(run, source, &mut CheckBuffers::default())
    }

    /// [`Self::check_chunks`] with buffers that are reused from run to run.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn check_chunks_with(
        &self,
        run: &ChunkRun<'_>,
        source: &[u8],
        buffers: &mut CheckBuffers,
    ) -> Result<(), Mismatch> {
        let equal_chunks = self.kernel.stages().equal_chunks;
        self.check_by(equal_chunks, run, source, buffers)
    }

    /// Skips what `equal_chunks` proves equal, and walks the rest.
    pub(crate) fn check_by(
        &self,
        equal_chunks: EqualChunks,
        run: &ChunkRun<'_>,
        source: &[u8],
        buffers: &mut CheckBuffers,
    ) -> Result<(), Mismatch> {
        let slices = Slices::new(run)?;
        let mut walk = Walk::new(self, run, &slices)?;
        let first = walk.weight;
        let equal = equal_chunks(self, &slices, run, source, buffers);
        if equal > 0 {
            walk.skip_to(equal);
        }
        let mut checked = (walk.weight - first) as usize;
        let exponents = buffers.exponents();
        for chunk in equal..slices.chunks {
            walk.check_position(chunk)?;
            let before = walk.weight;
            let walked = walk.chunk(chunk, exponents);
            let (from, to) = (checked, checked + (walk.weight - before) as usize);
            // Compare first: a wrong code shows in its weight before it shows in a later gap.
            let sm = run.sign_mantissa.get(from..).unwrap_or_default();
            let expected = source.get(2 * from..).unwrap_or_default();
            compare(&exponents[..to - from], sm, expected, before)?;
            walked?;
            if run.sign_mantissa.len() < to || source.len() < 2 * to {
                // Where a wrong position is why the caller's slices end too early, name it.
                walk.check_position(chunk + 1)?;
                return Err(Mismatch::new(
                    MismatchKind::Truncated,
                    slices.chunk_index(chunk),
                ));
            }
            checked = to;
        }
        walk.check_end()?;
        if source.len() != 2 * checked {
            return Err(Mismatch::new(
                MismatchKind::Truncated,
                slices.chunk_index(slices.chunks),
            ));
        }
        Ok(())
    }
}

/// Compares decoded weights as far as all slices reach; the first of them is number `first` of the unit.
fn compare(exponents: &[u8], sm: &[u8], source: &[u8], first: u64) -> Result<(), Mismatch> {
    let pairs = || {
        let decoded = exponents
            .iter()
            .zip(sm)
            .map(|(&exponent, &sm)| bf16::join(exponent, sm));
        bf16::words(source).zip(decoded)
    };
    // Without a branch per weight the comparison is vectorised.
    if pairs().fold(0, |difference, (expected, found)| {
        difference | (expected ^ found)
    }) == 0
    {
        return Ok(());
    }
    let different = (first..)
        .zip(pairs())
        .find(|(_, (expected, found))| expected != found);
    different.map_or(Ok(()), |(index, (expected, found))| {
        Err(Mismatch::new(
            MismatchKind::Weight { expected, found },
            index,
        ))
    })
}

/// A position in the unit, moved from code to code.
struct Walk<'a> {
    tables: &'a DecodeTables,
    slices: &'a Slices<'a>,
    unit_weights: u64,
    unit_bytes: u64,
    /// Index of the next weight.
    weight: u64,
    /// Where its code starts, or where the last code ended.
    bit: u64,
}

impl<'a> Walk<'a> {
    fn new(
        tables: &'a DecodeTables,
        run: &ChunkRun<'_>,
        slices: &'a Slices<'a>,
    ) -> Result<Self, Mismatch> {
        let (unit_weights, unit_bytes) = (run.unit_weights, run.unit_bytes);
        let mut walk = Self {
            tables,
            slices,
            unit_weights,
            unit_bytes,
            weight: 0,
            bit: 0,
        };
        if slices.first_chunk > 0 {
            let found = slices.position(0).unwrap_or(unit_weights);
            if found > unit_weights {
                let kind = MismatchKind::Position {
                    expected: unit_weights,
                    found,
                };
                return Err(Mismatch::new(kind, slices.first_chunk));
            }
            walk.weight = found;
            walk.bit = slices.first_chunk * CHUNK_BITS + u64::from(slices.gap(0));
        }
        if walk.weight == unit_weights {
            // The last code started in a chunk before. If EOF did not open the first window, it ended byte-aligned.
            if slices.gap(0) == 0 {
                walk.bit = 8 * unit_bytes;
            }
            walk.check_length()?;
        }
        Ok(walk)
    }

    /// Goes on from a chunk whose predecessors are equal, so that its position and first gap are known to be right.
    fn skip_to(&mut self, chunk: usize) {
        self.weight = self.slices.position(chunk).unwrap_or(self.unit_weights);
        let gap = self.slices.gap(chunk * WINDOWS);
        self.bit = self.slices.chunk_index(chunk) * CHUNK_BITS + u64::from(gap);
    }

    /// Walks a chunk of the run; its exponents, as far as they are the unit's, go to `exponents`.
    fn chunk(&mut self, chunk: usize, exponents: &mut [u8]) -> Result<(), Mismatch> {
        let mut count = 0;
        for window in chunk * WINDOWS..(chunk + 1) * WINDOWS {
            let gap = self.check_gap(window)?;
            let index = self.slices.window_index(window);
            // A window holds at most 64 codes and a chunk 512 windows: there is always room for 64 more.
            let Some(room) = exponents[count..].first_chunk_mut() else {
                break;
            };
            let Some((codes, end)) = self.tables.walk(self.slices.window(window), gap, room) else {
                return Err(Mismatch::new(MismatchKind::Hang, index));
            };
            let left = self.unit_weights - self.weight;
            if codes as u64 <= left {
                self.weight += codes as u64;
                self.bit = index * WINDOW_BITS + u64::from(end);
            } else if left > 0 {
                let bits: u32 = room[..left as usize]
                    .iter()
                    .map(|&e| self.tables.length(e))
                    .sum();
                self.weight = self.unit_weights;
                self.bit = index * WINDOW_BITS + u64::from(gap) + u64::from(bits);
            }
            count += (codes as u64).min(left) as usize;
            if left > 0 && self.weight == self.unit_weights {
                self.check_length()?;
            }
        }
        Ok(())
    }

    /// The stream ends in the byte in which its last code does.
    fn check_length(&self) -> Result<(), Mismatch> {
        let bytes = self.bit.div_ceil(8);
        if bytes == self.unit_bytes {
            Ok(())
        } else {
            Err(Mismatch::new(MismatchKind::Length, bytes))
        }
    }

    /// Rebuilds a window's gap: where its first code starts. Behind the last code, a window that this code's end opened has a gap only
    /// if an EOF starts there.
    fn check_gap(&self, window: usize) -> Result<u8, Mismatch> {
        let index = self.slices.window_index(window);
        let has_start = self.weight < self.unit_weights || !self.bit.is_multiple_of(8);
        let opened = has_start && self.bit / WINDOW_BITS == index;
        let expected = if opened {
            (self.bit % WINDOW_BITS) as u8
        } else {
            0
        };
        let found = self.slices.gap(window);
        if found == expected {
            return Ok(found);
        }
        Err(Mismatch::new(MismatchKind::Gap { expected, found }, index))
    }

    /// Rebuilds the position at which a chunk of the run starts.
    fn check_position(&self, chunk: usize) -> Result<(), Mismatch> {
        let index = self.slices.chunk_index(chunk);
        match self.slices.position(chunk) {
            Some(found) if found == self.weight => Ok(()),
            Some(found) => Err(Mismatch::new(
                MismatchKind::Position {
                    expected: self.weight,
                    found,
                },
                index,
            )),
            None => Err(Mismatch::new(MismatchKind::Truncated, index)),
        }
    }

    /// Checks what stands behind the run's last chunk.
    fn check_end(&self) -> Result<(), Mismatch> {
        let chunks = self.slices.chunks;
        if !self.slices.ends_unit {
            self.check_gap(chunks * WINDOWS)?;
            return self.check_position(chunks);
        }
        if self.weight < self.unit_weights {
            return Err(Mismatch::new(MismatchKind::Length, self.bit.div_ceil(8)));
        }
        // Where the last chunk has no weights, N is there already as its start, and the entry behind it may be missing.
        if self.slices.position(chunks).is_none() {
            return Ok(());
        }
        self.check_position(chunks)
    }
}
