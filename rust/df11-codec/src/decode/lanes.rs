//! The fast half of a check: proves chunks equal, several at a time, and leaves the others to the strict walk.
//!
//! A chunk's start is known from its position and its first gap, so chunks are decoded side by side, and their look-ups need not wait
//! for each other. Whether those positions and gaps are right comes out at each chunk's end: it has to be where the next one starts.
// These are the innermost steps; they must become part of their caller and of what its processor can do.
#![allow(clippy::inline_always)]

use super::{
    ChunkRun, DecodeTables,
    lane::{Exponents, Gaps, LOOK_UPS, Lane, MAX_WEIGHTS, Round, Stream},
    run::{Slices, WINDOWS},
};
use crate::{bf16, limits::CHUNK_BITS};

/// Chunks that are decoded side by side.
pub const LANES: usize = 4;
/// Memory of a check, reused from run to run.
#[derive(Debug)]
pub struct CheckBuffers {
    streams: Vec<Stream>,
    gaps: Vec<Gaps>,
    exponents: Vec<Exponents>,
}

impl Default for CheckBuffers {
    // `vec!` asks for zeroed memory; no such array is ever on the stack.
    #[allow(clippy::large_stack_arrays)]
    fn default() -> Self {
        Self {
            streams: vec![[0; size_of::<Stream>()]; LANES],
            gaps: vec![[0; size_of::<Gaps>()]; LANES],
            exponents: vec![[0; size_of::<Exponents>()]; LANES],
        }
    }
}

impl CheckBuffers {
    /// Room for the exponents of a chunk.
    pub fn exponents(&mut self) -> &mut [u8] {
        self.exponents.first_mut().map_or(&mut [], |room| room)
    }
}

/// Counts the leading chunks of a run that are equal to `source`, every gap and position included. Stops before the chunk in which
/// the unit's last weight starts; may stop anywhere. The run's first position and gap are taken as they are unless it begins the unit.
pub type EqualChunks =
    fn(&DecodeTables, &Slices<'_>, &ChunkRun<'_>, &[u8], &mut CheckBuffers) -> usize;

/// [`EqualChunks`] in plain Rust.
#[inline(always)]
pub fn equal_chunks(
    tables: &DecodeTables,
    slices: &Slices<'_>,
    run: &ChunkRun<'_>,
    source: &[u8],
    buffers: &mut CheckBuffers,
) -> usize {
    equal_chunks_with(tables, slices, run, source, buffers, |_, _| ())
}

/// [`equal_chunks`] that asks for memory it is going to need: with `fetch`, for the cache line of some bytes at an index.
#[inline(always)]
pub fn equal_chunks_with(
    tables: &DecodeTables,
    slices: &Slices<'_>,
    run: &ChunkRun<'_>,
    source: &[u8],
    buffers: &mut CheckBuffers,
    fetch: impl Fn(&[u8], usize) + Copy,
) -> usize {
    if slices.first_chunk == 0 && (slices.gap(0) != 0 || slices.position(0) != Some(0)) {
        return 0;
    }
    let mut equal = 0;
    while equal + LANES <= slices.chunks
        && are_equal::<LANES>(tables, slices, run, source, equal, buffers, fetch)
    {
        equal += LANES;
    }
    while equal < slices.chunks
        && are_equal::<1>(tables, slices, run, source, equal, buffers, fetch)
    {
        equal += 1;
    }
    equal
}

/// What a chunk claims to be.
#[derive(Clone, Copy, Default)]
struct Chunk<'a> {
    sign_mantissa: &'a [u8],
    source: &'a [u8],
    first_gap: usize,
    next_gap: usize,
}

impl<'a> Chunk<'a> {
    /// Chunk `chunk` of the run; `None` where its slices are not there or it ends the unit.
    fn new(
        slices: &Slices<'_>,
        run: &ChunkRun<'a>,
        source: &'a [u8],
        chunk: usize,
    ) -> Option<Self> {
        let first = slices.position(0)?;
        let end = slices.position(chunk + 1)?;
        let from = slices.position(chunk)?.checked_sub(first)? as usize;
        let to = end.checked_sub(first)? as usize;
        if end >= run.unit_weights || to.saturating_sub(from) > MAX_WEIGHTS {
            return None;
        }
        Some(Self {
            sign_mantissa: run.sign_mantissa.get(from..to)?,
            source: source.get(2 * from..2 * to)?,
            first_gap: usize::from(slices.gap(chunk * WINDOWS)),
            next_gap: usize::from(slices.gap((chunk + 1) * WINDOWS)),
        })
    }
}

/// Whether `K` chunks from `first` on are equal.
#[inline(always)]
fn are_equal<const K: usize>(
    tables: &DecodeTables,
    slices: &Slices<'_>,
    run: &ChunkRun<'_>,
    source: &[u8],
    first: usize,
    buffers: &mut CheckBuffers,
    fetch: impl Fn(&[u8], usize) + Copy,
) -> bool {
    let mut chunks = [Chunk::default(); K];
    for (chunk, index) in chunks.iter_mut().zip(first..) {
        let Some(found) = Chunk::new(slices, run, source, index) else {
            return false;
        };
        *chunk = found;
    }
    let (Some(streams), Some(gaps), Some(exponents)) = (
        buffers.streams.first_chunk_mut::<K>(),
        buffers.gaps.first_chunk_mut::<K>(),
        buffers.exponents.first_chunk_mut::<K>(),
    ) else {
        return false;
    };
    let mut lanes = [Lane::default(); K];
    for (k, chunk) in chunks.iter().enumerate() {
        slices.copy_chunk(first + k, &mut streams[k]);
        gaps[k][0] = chunk.first_gap as u8;
        lanes[k] = Lane {
            bit: chunk.first_gap,
            decoded: 0,
            weights: chunk.sign_mantissa.len(),
        };
    }
    // While there is room for all codes of a round in every lane, and then lane by lane.
    while lanes.iter().all(Lane::has_round) {
        for (lane, chunk) in lanes.iter().zip(&chunks) {
            fetch(chunk.source, 2 * lane.decoded);
            fetch(chunk.sign_mantissa, lane.decoded);
        }
        round(&mut lanes, tables, streams, gaps, exponents);
    }
    for (k, chunk) in chunks.iter().enumerate() {
        let (lane, exponents) = (&mut lanes[k], &mut exponents[k]);
        while lane.has_round() {
            let mut round = lane.begin(&streams[k]);
            for _ in 0..LOOK_UPS {
                round.look_up(tables, exponents);
            }
            lane.end(&round, tables, &streams[k], &mut gaps[k], exponents);
        }
        while lane.decoded < lane.weights {
            lane.single(tables, &streams[k], &mut gaps[k], exponents);
        }
        let is_equal = lane.bit == CHUNK_BITS as usize + chunk.next_gap
            && usize::from(gaps[k][WINDOWS]) == chunk.next_gap
            && packed_equal(&gaps[k], slices.chunk_gaps(first + k))
            && weights_equal(
                &exponents[..lane.weights],
                chunk.sign_mantissa,
                chunk.source,
            );
        if !is_equal {
            return false;
        }
    }
    true
}

/// A load and some look-ups in every lane. The lanes take turns with each look-up, so that the processor has those of all at hand.
#[inline(always)]
fn round<const K: usize>(
    lanes: &mut [Lane; K],
    tables: &DecodeTables,
    streams: &[Stream; K],
    gaps: &mut [Gaps; K],
    exponents: &mut [Exponents; K],
) {
    let mut rounds = [Round::default(); K];
    for k in 0..K {
        rounds[k] = lanes[k].begin(&streams[k]);
    }
    for _ in 0..LOOK_UPS {
        for k in 0..K {
            rounds[k].look_up(tables, &mut exponents[k]);
        }
    }
    for k in 0..K {
        lanes[k].end(
            &rounds[k],
            tables,
            &streams[k],
            &mut gaps[k],
            &mut exponents[k],
        );
    }
}

/// Whether a chunk's gaps are those of its packed bytes.
#[inline(always)]
fn packed_equal(gaps: &Gaps, packed: &[u8]) -> bool {
    const GROUP: usize = 5;
    let groups = packed.chunks_exact(GROUP);
    groups.len() == WINDOWS / 8
        && gaps
            .chunks_exact(8)
            .zip(groups)
            .fold(0, |difference, (gaps, packed)| {
                let stored = packed
                    .iter()
                    .fold(0, |word, &byte| word << 8 | u64::from(byte));
                let rebuilt = gaps.iter().fold(0, |word, &gap| word << 5 | u64::from(gap));
                difference | (stored ^ rebuilt)
            })
            == 0
}

/// Whether decoded weights are those of the source.
#[inline(always)]
fn weights_equal(exponents: &[u8], sign_mantissa: &[u8], source: &[u8]) -> bool {
    let decoded = exponents.iter().zip(sign_mantissa);
    decoded
        .zip(bf16::words(source))
        .fold(0, |difference, ((&exponent, &half), word)| {
            difference | (word ^ bf16::join(exponent, half))
        })
        == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ExponentHistogram, Kernel, UnitCode,
        encode::{EncodedPiece, PieceStart, encode_piece},
    };

    /// Checks a unit of these exponents, and says how many of its chunks are proven equal.
    fn equal(exponents: impl Iterator<Item = u8>) -> (usize, usize) {
        let weights: Vec<u8> = exponents
            .flat_map(|e| (u16::from(e) << 7 | 0x55).to_le_bytes())
            .collect();
        let mut histogram = ExponentHistogram::default();
        histogram.count(Kernel::Reference, &weights);
        let last = weights.last_chunk().map_or(0, |w| u16::from_le_bytes(*w));
        let code = UnitCode::new(&histogram, bf16::exponent(last)).expect("encodable");
        let start = PieceStart {
            weight: 0,
            bit: 0,
            is_last: true,
        };
        let mut piece = EncodedPiece::default();
        encode_piece(Kernel::Reference, &code, &weights, start, &mut piece);
        let run = ChunkRun {
            first_chunk: 0,
            unit_weights: code.layout().weights,
            unit_bytes: code.layout().encoded_exponent_bytes,
            encoded_exponent: &piece.encoded_exponent.bytes,
            gaps: &piece.gaps.bytes,
            output_positions: &piece.output_positions,
            sign_mantissa: &piece.sign_mantissa,
        };
        let tables = DecodeTables::with_kernel(Kernel::Reference, code.luts()).expect("own tables");
        let slices = Slices::new(&run).expect("whole");
        let buffers = &mut CheckBuffers::default();
        (
            equal_chunks(&tables, &slices, &run, &weights, buffers),
            slices.chunks,
        )
    }

    #[test]
    fn all_chunks_but_the_last_are_proven_equal() {
        let steep = (0..200_000u32)
            .map(|i| 120 - (i.wrapping_mul(0x9E37_79B1) | 1 << 24).trailing_zeros() as u8);
        let (proven, chunks) = equal(steep);
        assert!(
            chunks > LANES && proven == chunks - 1,
            "{proven} of {chunks}"
        );
        let flat = (0..40_000u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 8) as u8 % 240);
        let (proven, chunks) = equal(flat);
        assert!(
            chunks > LANES && proven == chunks - 1,
            "{proven} of {chunks}"
        );
    }
}
