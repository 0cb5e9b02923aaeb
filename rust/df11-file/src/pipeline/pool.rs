//! The memory of all spans, on its way from the reader to the work and back.

use std::{collections::VecDeque, time::Duration};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{
    no_memory,
    span::{Block, Span, SpanMemory},
};
use crate::{budget::PIECE_WEIGHTS, error::Result, progress::Progress};

/// So many full spans keep the workers busy while the next is read.
const ENOUGH: usize = 2;
/// Between two looks at how many are left.
const MOMENT: Duration = Duration::from_millis(1);

/// The reader's side of it. Memory is used again before any is touched for the first time, which takes as long as reading into it.
pub struct SpanPool {
    /// Bytes that each has room for.
    longest: usize,
    untouched: Vec<SpanMemory>,
    home: Sender<SpanMemory>,
    back: Receiver<SpanMemory>,
    /// Bytes of the last spans that were filled.
    filled: VecDeque<usize>,
}

impl SpanPool {
    /// Memory for so many spans, each at once for so many bytes: growing, it would take up to twice that.
    ///
    /// # Errors
    /// `E_NO_MEMORY`.
    pub fn new(spans: usize, longest: usize) -> Result<Self> {
        let (home, back) = bounded(spans);
        let memory = || {
            let mut counts = Vec::new();
            counts
                .try_reserve_exact(longest.div_ceil(PIECE_WEIGHTS as usize * 2))
                .map_err(|error| no_memory(&error))?;
            let bytes = Block::with_room(longest).map_err(|error| no_memory(&error))?;
            Ok(SpanMemory { bytes, counts })
        };
        Ok(Self {
            longest,
            filled: VecDeque::with_capacity(spans),
            untouched: (0..spans).map(|_| memory()).collect::<Result<_>>()?,
            home,
            back,
        })
    }

    /// A span to fill, once there is one, while `waiting` tells how many filled ones nobody has taken yet.
    ///
    /// # Errors
    /// `E_CANCELLED`: then nobody may be left who would take the waiting ones, so that none comes back.
    pub fn span(&mut self, waiting: impl Fn() -> usize, progress: &Progress) -> Result<Span> {
        loop {
            let memory = self.back.try_recv().ok();
            let memory = memory.or_else(|| self.untouched(waiting()));
            if let Some(memory) = memory.or_else(|| self.back.recv_timeout(MOMENT).ok()) {
                return Ok(Span::new(memory, self.home.clone()));
            }
            progress.check_cancelled()?;
        }
    }

    /// Told how many bytes the span got that is handed on next.
    pub fn filled(&mut self, bytes: usize) {
        if self.filled.len() == self.filled.capacity() {
            self.filled.pop_front();
        }
        self.filled.push_back(bytes);
    }

    /// Untouched memory, unless the `waiting` spans are enough. Most passthrough tensors fill little of theirs.
    fn untouched(&mut self, waiting: usize) -> Option<SpanMemory> {
        let bytes: usize = self.filled.iter().rev().take(waiting).sum();
        let is_enough = bytes >= ENOUGH * self.longest;
        (!is_enough).then(|| self.untouched.pop()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;
    use crate::error::Code;

    const SPANS: usize = 8;

    /// The next span, with so many waiting.
    fn next(pool: &mut SpanPool, waiting: usize) -> Span {
        pool.span(|| waiting, &Progress::default()).unwrap()
    }

    /// Fills a span.
    fn fill(pool: &mut SpanPool, mut span: Span, bytes: usize) -> Span {
        span.memory().bytes.resize(bytes).unwrap();
        pool.filled(bytes);
        span
    }

    #[test]
    fn memory_is_used_again_before_more_is_touched() {
        let mut pool = SpanPool::new(SPANS, 8).unwrap();
        let new = next(&mut pool, 0);
        let first = fill(&mut pool, new, 8);
        let new = next(&mut pool, 0);
        assert!(new.bytes().is_empty(), "nothing has come back");
        let second = fill(&mut pool, new, 8);
        drop(first);
        assert_eq!(next(&mut pool, 0).bytes().len(), 8);
        let again = next(&mut pool, 2);
        assert_eq!(again.bytes().len(), 8);
        // Two full ones wait, which is enough: what is in use is waited for.
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(30));
                drop(again);
            });
            assert_eq!(next(&mut pool, 2).bytes().len(), 8);
        });
        drop(second);
    }

    #[test]
    fn spans_with_little_in_them_are_not_enough() {
        let mut pool = SpanPool::new(SPANS, 8).unwrap();
        let spans: Vec<_> = (0..SPANS)
            .map(|waiting| {
                let new = next(&mut pool, waiting);
                fill(&mut pool, new, 1)
            })
            .collect();
        assert_eq!(spans.len(), SPANS);
    }

    #[test]
    fn who_waits_for_a_span_of_a_failed_job_is_released() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut pool = SpanPool::new(SPANS, 8).unwrap();
            let _nobody_takes_these: Vec<_> = (0..SPANS).map(|_| next(&mut pool, 0)).collect();
            let progress = Progress::default();
            progress.cancel();
            tell.send(pool.span(|| SPANS, &progress).err()).unwrap();
        });
        let error = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(error.map(|error| error.code), Some(Code::Cancelled));
    }
}
