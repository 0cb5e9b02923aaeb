//! Rates of the code itself: units in memory, encoded and checked over and over. No file, no hash.

use std::{
    iter::Cycle,
    slice::ChunksExact,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use df11_codec::{
    BitRun, CheckBuffers, ChunkRun, DecodeTables, EncodedPiece, ExponentHistogram, Kernel,
    PieceStart, UnitCode, bf16, encode_piece,
    limits::{CHUNK_BYTES, GAP_BYTES_PER_CHUNK},
};
use serde::Serialize;

use super::Stop;
use crate::{
    budget::PIECE_WEIGHTS,
    error::{Code, Error, Result},
    progress::cancelled,
    stored::unit_bytes,
    task::{spawn_scoped, stopped},
};

/// Kernel chunks that one task checks.
const CHUNKS_PER_RUN: usize = unit_bytes::CHUNKS_PER_RUN as usize;
/// Fewest passes of a measurement, whatever time they take.
const FEWEST_PASSES: usize = 3;

/// Weights a second, memory to memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MemoryRates {
    /// Worker threads.
    pub threads: usize,
    /// Histogram, code and all six tensors.
    pub compress_weights_per_second: f64,
    /// Decoding and comparing.
    pub verify_weights_per_second: f64,
}

/// Measures units of `unit` weights each out of little-endian BF16 `weights`, with `threads` threads; each of the two rates takes about
/// `seconds`. A rate is the median of passes over a unit: encoded is one after the other, checked the first.
///
/// # Errors
/// `E_UNIT_SIZE` for weights that DF11 cannot hold, `E_CANCELLED`, `E_NO_MEMORY` where a thread cannot be started, `E_INTERNAL` where the
/// check finds a difference.
pub fn measure(
    kernel: Kernel,
    threads: usize,
    (weights, unit): (&[u8], usize),
    seconds: Duration,
    stop: Stop<'_>,
) -> Result<MemoryRates> {
    let mut units = weights
        .chunks_exact((2 * unit).clamp(2, weights.len().max(2)))
        .cycle();
    let first = units.next().unwrap_or_default();
    let mut bench = Bench {
        kernel,
        weights: first,
        units,
        workers: (0..threads).map(|_| Worker::default()).collect(),
        stop,
    };
    let tensors = bench.tensors()?;
    let mut rate = |pass: &dyn Fn(&mut Bench<'_>) -> Result<()>| {
        let seconds = median_seconds(seconds, || pass(&mut bench))?;
        Ok::<_, Error>((first.len() / 2) as f64 / seconds)
    };
    Ok(MemoryRates {
        threads,
        verify_weights_per_second: rate(&|bench| bench.verify(&tensors))?,
        compress_weights_per_second: rate(&|bench| bench.compress())?,
    })
}

/// The median time of a pass, in seconds, after one that is not counted.
fn median_seconds(limit: Duration, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    pass()?;
    let (began, mut passes) = (Instant::now(), Vec::new());
    while passes.len() < FEWEST_PASSES || began.elapsed() < limit {
        let start = Instant::now();
        pass()?;
        passes.push(start.elapsed().as_secs_f64());
    }
    passes.sort_by(f64::total_cmp);
    Ok(passes[passes.len() / 2].max(1e-9))
}

struct Bench<'a> {
    kernel: Kernel,
    /// Of the unit in work.
    weights: &'a [u8],
    /// The next ones.
    units: Cycle<ChunksExact<'a, u8>>,
    workers: Vec<Worker>,
    stop: Stop<'a>,
}

/// Buffers of one thread, kept from pass to pass.
#[derive(Default)]
struct Worker {
    piece: EncodedPiece,
    check: CheckBuffers,
}

/// A unit's code and where its pieces begin.
struct Coded {
    code: UnitCode,
    starts: Vec<PieceStart>,
}

/// A unit's tensors.
struct Tensors {
    coded: Coded,
    tables: DecodeTables,
    encoded_exponent: Vec<u8>,
    sign_mantissa: Vec<u8>,
    output_positions: Vec<u8>,
    gaps: Vec<u8>,
}

impl<'a> Bench<'a> {
    fn pieces(&self) -> std::slice::Chunks<'a, u8> {
        self.weights.chunks(2 * PIECE_WEIGHTS as usize)
    }

    fn survey(&mut self) -> Result<Coded> {
        let (kernel, weights): (_, Vec<_>) = (self.kernel, self.pieces().collect());
        let pieces = self.each(weights.len(), |_, piece| {
            let mut histogram = ExponentHistogram::default();
            histogram.count(kernel, weights[piece]);
            Ok(histogram)
        })?;
        let mut total = ExponentHistogram::default();
        for piece in &pieces {
            total.merge(piece);
        }
        let last = self
            .weights
            .last_chunk()
            .map_or(0, |word| u16::from_le_bytes(*word));
        let code = UnitCode::new(&total, bf16::exponent(last))
            .map_err(|error| Error::new(Code::UnitSize, error.to_string()))?;
        let mut next = PieceStart {
            weight: 0,
            bit: 0,
            is_last: false,
        };
        let starts = pieces.iter().map(|piece| {
            let mut start = next;
            next.weight += piece.total();
            next.bit += code.bits_of(piece);
            start.is_last = next.weight == total.total();
            start
        });
        Ok(Coded {
            starts: starts.collect(),
            code,
        })
    }

    /// One pass of compressing, of the next unit; what is encoded is overwritten by the next piece.
    fn compress(&mut self) -> Result<()> {
        self.weights = self.units.next().unwrap_or(self.weights);
        let (kernel, coded) = (self.kernel, self.survey()?);
        let pieces: Vec<_> = self.pieces().zip(&coded.starts).collect();
        self.each(pieces.len(), |worker, piece| {
            let (weights, start) = pieces[piece];
            encode_piece(kernel, &coded.code, weights, *start, &mut worker.piece);
            Ok(())
        })?;
        Ok(())
    }

    fn tensors(&mut self) -> Result<Tensors> {
        let coded = self.survey()?;
        let tables = DecodeTables::with_kernel(self.kernel, coded.code.luts())
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        let mut all = Tensors {
            tables,
            encoded_exponent: Vec::new(),
            sign_mantissa: Vec::new(),
            output_positions: Vec::new(),
            gaps: Vec::new(),
            coded,
        };
        let mut piece = EncodedPiece::default();
        for (weights, start) in self.pieces().zip(&all.coded.starts) {
            if (self.stop)() {
                return Err(cancelled());
            }
            encode_piece(self.kernel, &all.coded.code, weights, *start, &mut piece);
            join(&mut all.encoded_exponent, &piece.encoded_exponent);
            join(&mut all.gaps, &piece.gaps);
            all.output_positions.extend(&piece.output_positions);
            all.sign_mantissa.extend(&piece.sign_mantissa);
        }
        Ok(all)
    }

    /// One pass of checking.
    fn verify(&mut self, tensors: &Tensors) -> Result<()> {
        let chunks = tensors.coded.code.layout().chunks as usize;
        let weights = self.weights;
        self.each(chunks.div_ceil(CHUNKS_PER_RUN), |worker, run| {
            let first = run * CHUNKS_PER_RUN;
            let (run, range) = tensors.run(first, chunks.min(first + CHUNKS_PER_RUN));
            let source = &weights[2 * range.start..2 * range.end];
            let checked = tensors
                .tables
                .check_chunks_with(&run, source, &mut worker.check);
            checked.map_err(|found| Error::new(Code::Internal, format!("{found:?}")))
        })?;
        Ok(())
    }

    /// Does tasks `0..tasks` on all threads and gives what they found, in order.
    fn each<T: Send>(
        &mut self,
        tasks: usize,
        work: impl Fn(&mut Worker, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (next, stop) = (AtomicUsize::new(0), self.stop);
        let share = |worker: &mut Worker| {
            let mut found = Vec::new();
            loop {
                let task = next.fetch_add(1, Relaxed);
                if task >= tasks {
                    return Ok(found);
                }
                if stop() {
                    return Err(cancelled());
                }
                found.push((task, work(worker, task)?));
            }
        };
        let mut found = thread::scope(|scope| {
            let start = |worker| spawn_scoped(scope, "df11-bench", || share(worker));
            let workers = self.workers.iter_mut().map(start);
            let workers: Vec<_> = workers.collect::<Result<_>>()?;
            let mut found = Vec::new();
            for worker in workers {
                found.append(&mut worker.join().map_err(|_| stopped())??);
            }
            Ok::<_, Error>(found)
        })?;
        found.sort_unstable_by_key(|(task, _)| *task);
        Ok(found.into_iter().map(|(_, result)| result).collect())
    }
}

impl Tensors {
    /// Kernel chunks `first..end` and the weights that start in them.
    fn run(&self, first: usize, end: usize) -> (ChunkRun<'_>, std::ops::Range<usize>) {
        let layout = self.coded.code.layout();
        let position = |entry: usize| {
            let bytes = self.output_positions.get(4 * entry..);
            bytes
                .and_then(|bytes| bytes.first_chunk())
                .map_or(layout.weights as usize, |b| u32::from_le_bytes(*b) as usize)
        };
        let part = |tensor: &'_ [u8], unit: u64, more: usize| {
            unit as usize * first..(unit as usize * end + more).min(tensor.len())
        };
        let weights = position(first)..position(end);
        let run = ChunkRun {
            first_chunk: first as u64,
            unit_weights: layout.weights,
            unit_bytes: layout.encoded_exponent_bytes,
            encoded_exponent: &self.encoded_exponent[part(&self.encoded_exponent, CHUNK_BYTES, 8)],
            gaps: &self.gaps[part(&self.gaps, GAP_BYTES_PER_CHUNK, 1)],
            output_positions: &self.output_positions[part(&self.output_positions, 4, 4)],
            sign_mantissa: &self.sign_mantissa[weights.clone()],
        };
        (run, weights)
    }
}

/// Appends a run of bits to its tensor.
fn join(tensor: &mut Vec<u8>, run: &BitRun) {
    let mut bytes = &run.bytes[..];
    if !run.first_bit.is_multiple_of(8)
        && let (Some(last), Some((first, rest))) = (tensor.last_mut(), bytes.split_first())
    {
        *last |= first;
        bytes = rest;
    }
    tensor.extend(bytes);
}
