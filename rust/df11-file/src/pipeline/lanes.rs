//! A long run, read by several threads: each takes the next piece, reads, counts and hashes it while it lies in the cache.

use std::{mem, sync::Mutex, thread};

use df11_codec::{ExponentHistogram, Kernel};

use super::fetch::{Run, steps};
use crate::{
    budget::PIECE_WEIGHTS,
    error::Result,
    fault,
    hash::Xxh3,
    progress::Progress,
    source::Source,
    sync::lock,
    task::{spawn_scoped, stopped},
    turns::Turns,
};

/// How a long run is read.
pub struct Lanes<'a> {
    /// From where.
    pub source: &'a Source,
    /// Not while it is a flush's turn.
    pub turns: &'a Turns,
    /// Told what was read, and asked whether to stop.
    pub progress: &'a Progress,
    /// Counts.
    pub kernel: Kernel,
    /// Threads, this one included.
    pub count: usize,
    /// One read at a time, in the order of the file; only the rest is done at once.
    pub in_order: bool,
}

/// Bytes of the run within one piece of the span.
struct Step<'a> {
    index: usize,
    /// Where they are read from.
    offset: u64,
    target: &'a mut [u8],
    counts: Option<&'a mut ExponentHistogram>,
}

impl Lanes<'_> {
    /// Reads a run whose bytes are not converted.
    ///
    /// # Errors
    /// Those of the source; `E_CANCELLED`.
    pub fn read(&self, run: &mut Run<'_>) -> Result<()> {
        let (first, at) = (run.offset, run.at);
        let pieces = run.counts.iter_mut().flat_map(|counts| {
            let piece = at / (PIECE_WEIGHTS as usize * 2);
            counts[piece..].iter_mut().map(Some)
        });
        let pieces = pieces.chain(std::iter::repeat_with(|| None));
        let steps = steps(at, run.target).zip(pieces).enumerate();
        let queue = Mutex::new(steps.map(|(index, ((place, target), counts))| Step {
            index,
            offset: first + (place - at) as u64,
            target,
            counts,
        }));
        let hashing = run.hasher.as_deref_mut().map(Hashing::new);
        let lane = || -> Result<()> {
            loop {
                let mut turn = lock(&queue);
                let Some(step) = turn.next() else {
                    return Ok(());
                };
                let turn = self.in_order.then_some(turn);
                fault::here("lane");
                self.progress.check_cancelled()?;
                self.turns
                    .reading(|| self.source.read(step.target, step.offset))?;
                drop(turn);
                if let Some(counts) = step.counts {
                    counts.count(self.kernel, step.target);
                }
                if let Some(hashing) = &hashing {
                    hashing.take(step.index, step.target);
                }
                self.progress.add_stage(step.target.len() as u64);
            }
        };
        thread::scope(|scope| {
            // A thread that cannot be had leaves its work to the others, at least to this one.
            let others: Vec<_> = (1..self.count)
                .filter_map(|_| spawn_scoped(scope, "df11-lane", lane).ok())
                .collect();
            let mut outcome = lane();
            for other in others {
                outcome = outcome.and(other.join().unwrap_or_else(|_| Err(stopped())));
            }
            outcome
        })
    }
}

/// Hashes steps in their order, whichever thread brings them.
struct Hashing<'a> {
    state: Mutex<InOrder<'a>>,
}

struct InOrder<'a> {
    /// Away while a thread hashes.
    hasher: Option<&'a mut Xxh3>,
    /// Index of the next step to hash.
    next: usize,
    /// Steps that came, not hashed yet.
    waiting: Vec<(usize, &'a [u8])>,
}

impl<'a> Hashing<'a> {
    fn new(hasher: &'a mut Xxh3) -> Self {
        let state = Mutex::new(InOrder {
            hasher: Some(hasher),
            next: 0,
            waiting: Vec::new(),
        });
        Self { state }
    }

    /// Takes a step, and hashes what is due unless another thread is at it; that one takes this step too when its turn comes.
    fn take(&self, index: usize, bytes: &'a [u8]) {
        let mut state = lock(&self.state);
        state.waiting.push((index, bytes));
        while let Some((hasher, bytes)) = state.due() {
            drop(state);
            hasher.update(bytes);
            state = lock(&self.state);
            state.hasher = Some(hasher);
        }
    }
}

impl<'a> InOrder<'a> {
    /// The next step, and the hasher to hash it with.
    fn due(&mut self) -> Option<(&'a mut Xxh3, &'a [u8])> {
        let found = self
            .waiting
            .iter()
            .position(|(index, _)| *index == self.next)?;
        let hasher = mem::take(&mut self.hasher)?;
        self.next += 1;
        let (_, bytes) = self.waiting.swap_remove(found);
        Some((hasher, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn steps_are_hashed_in_their_order_whoever_brings_them() {
        let steps: Vec<_> = (0..40_u8).map(|index| [index; 100]).collect();
        let wanted = crate::hash::xxh3_64(&steps.concat());
        let mut hasher = Xxh3::new();
        let hashing = Hashing::new(&mut hasher);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for lane in 0..4 {
                let (steps, hashing, start) = (&steps, &hashing, &start);
                scope.spawn(move || {
                    start.wait();
                    // The last first.
                    let mine = steps.iter().enumerate().skip(lane).step_by(4).rev();
                    mine.for_each(|(index, step)| hashing.take(index, step));
                });
            }
        });
        drop(hashing);
        assert_eq!(hasher.digest(), wanted);
    }
}
