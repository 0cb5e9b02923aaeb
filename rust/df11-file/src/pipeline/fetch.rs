//! How bytes of the source come into memory: short runs by the reader alone, long ones in lanes.

use std::{
    thread,
    time::{Duration, Instant},
};

use df11_codec::{ExponentHistogram, Kernel};

use super::{io_choice::Choice, lanes::Lanes};
use crate::{
    budget::PIECE_WEIGHTS,
    changes::Changes,
    convert::Conversion,
    error::Result,
    hash::Xxh3,
    options::{Io, Options},
    progress::Progress,
    source::Source,
    system,
    turns::Turns,
};

/// Bytes per read call, a piece: it is counted while it lies in the cache, and a request to stop is seen at once.
const READ_BYTES: usize = PIECE_WEIGHTS as usize * 2;
/// Reads at once.
const READS_AT_ONCE: usize = 4;
/// Shorter runs are not worth starting threads for.
const MIN_LANES_BYTES: usize = 16 * READ_BYTES;

/// Consecutive bytes of a source tensor, and where they go.
pub struct Run<'a> {
    /// Where they begin in the source's data.
    pub offset: u64,
    /// The bytes read per [`Self::target`]'s.
    pub conversion: Option<Conversion>,
    /// Where they go, converted.
    pub target: &'a mut [u8],
    /// Where the target begins in the span.
    pub at: usize,
    /// Takes the source's bytes, where they are to be hashed.
    pub hasher: Option<&'a mut Xxh3>,
    /// Takes the exponents by piece of the span, where they are to be counted.
    pub counts: Option<&'a mut [ExponentHistogram]>,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Totals {
    /// Bytes asked from the source.
    pub bytes: u64,
    /// What conversions did to values, each counted in the first pass over it. The reader takes them tensor by tensor.
    pub changes: Changes,
}

/// Reads runs.
pub struct Fetcher<'a> {
    source: &'a Source,
    turns: &'a Turns,
    progress: &'a Progress,
    kernel: Kernel,
    brake: Brake,
    choice: Choice,
    /// Threads that count and hash while one of them reads.
    lanes: usize,
    raw: Vec<u8>,
    /// So far.
    pub totals: Totals,
}

impl<'a> Fetcher<'a> {
    /// Reads from `source` when `turns` let it, with the kernel, the threads and in the way of `options`, at most `max_rate` bytes a second; with such a limit,
    /// one after the other.
    pub fn new(
        (source, turns): (&'a Source, &'a Turns),
        progress: &'a Progress,
        options: &Options,
        max_rate: Option<u64>,
    ) -> Self {
        let io = if max_rate.is_some() {
            Io::Sequential
        } else {
            options.io
        };
        Self {
            source,
            turns,
            progress,
            kernel: options.kernel,
            brake: Brake {
                max_rate,
                started: Instant::now(),
            },
            choice: Choice::new(io),
            lanes: system::threads(options.threads).min(READS_AT_ONCE),
            raw: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// The way that is used now.
    pub fn io(&self) -> Io {
        self.choice.now()
    }

    /// Reads a run.
    ///
    /// # Errors
    /// Those of the source; `E_CANCELLED`.
    pub fn fetch(&mut self, mut run: Run<'_>) -> Result<()> {
        let is_short = run.target.len() < MIN_LANES_BYTES;
        if run.conversion.is_some() || is_short || self.brake.max_rate.is_some() {
            return self.one_by_one(&mut run);
        }
        let (io, started) = (self.choice.now(), Instant::now());
        let in_order = io != Io::Parallel;
        let lanes = Lanes {
            source: self.source,
            turns: self.turns,
            progress: self.progress,
            kernel: self.kernel,
            count: if in_order { self.lanes } else { READS_AT_ONCE },
            in_order,
        };
        lanes.read(&mut run)?;
        let bytes = run.target.len() as u64;
        self.totals.bytes += bytes;
        self.choice.took(bytes, started.elapsed());
        Ok(())
    }

    fn one_by_one(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut offset = run.offset;
        for (at, target) in steps(run.at, run.target) {
            self.progress.check_cancelled()?;
            let read: &[u8] = if let Some(conversion) = run.conversion {
                self.raw
                    .resize(conversion.source_bytes(target.len() as u64) as usize, 0);
                self.turns
                    .reading(|| self.source.read(&mut self.raw, offset))?;
                let changes = conversion.apply(&self.raw, target);
                if run.hasher.is_some() && conversion.rounds() {
                    self.totals.changes.add(&changes);
                }
                &self.raw
            } else {
                self.turns.reading(|| self.source.read(target, offset))?;
                target
            };
            if let Some(hasher) = &mut run.hasher {
                hasher.update(read);
            }
            offset += read.len() as u64;
            self.totals.bytes += read.len() as u64;
            if let Some(counts) = &mut run.counts {
                counts[at / READ_BYTES].count(self.kernel, target);
            }
            self.progress.add_stage(target.len() as u64);
            self.brake.hold(self.totals.bytes, self.progress)?;
        }
        Ok(())
    }
}

/// Parts of `target` that lie in one piece of the span each, and where they begin in the span.
pub fn steps(at: usize, target: &mut [u8]) -> impl Iterator<Item = (usize, &mut [u8])> + Send {
    let head = (READ_BYTES - at % READ_BYTES).min(target.len());
    let (head_bytes, rest) = target.split_at_mut(head);
    let first = (at, head_bytes);
    let others = rest
        .chunks_mut(READ_BYTES)
        .enumerate()
        .map(move |(index, bytes)| (at + head + index * READ_BYTES, bytes));
    std::iter::once(first).chain(others)
}

/// Longest sleep of the brake, so that a request to stop is seen.
const NAP: Duration = Duration::from_millis(50);

/// Keeps to a rate.
struct Brake {
    max_rate: Option<u64>,
    started: Instant,
}

impl Brake {
    /// Waits until `bytes` are allowed.
    fn hold(&self, bytes: u64, progress: &Progress) -> Result<()> {
        let Some(rate) = self.max_rate else {
            return Ok(());
        };
        let due = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        while let Some(left) = due
            .checked_sub(self.started.elapsed())
            .filter(|left| !left.is_zero())
        {
            progress.check_cancelled()?;
            thread::sleep(left.min(NAP));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_piece_borders_and_cover_everything() {
        for at in [0, 2, READ_BYTES - 2, READ_BYTES, 3 * READ_BYTES + 6] {
            for length in [2, READ_BYTES, READ_BYTES + 4, 5 * READ_BYTES] {
                let mut target = vec![0; length];
                let mut next = at;
                for (place, part) in steps(at, &mut target) {
                    assert_eq!(place, next);
                    assert!(!part.is_empty());
                    assert_eq!(place / READ_BYTES, (place + part.len() - 1) / READ_BYTES);
                    next += part.len();
                }
                assert_eq!(next, at + length);
            }
        }
    }
}
