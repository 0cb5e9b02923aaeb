//! The thread that keeps the order: it hands out tasks, takes their results as they come, and puts them in order.
//!
//! Everything that goes through here has its memory before it starts. So the oldest piece can always finish, and nothing grows.

use std::{collections::VecDeque, sync::Arc};

use crossbeam_channel::{Receiver, Sender, select};
use df11_codec::EncodedPiece;

use super::{
    crew::{Done, Task},
    ledger::Ledger,
    open::Open,
    span::Span,
    surveyor::received,
    unit::{ActiveUnit, Spares},
    writer::Finished,
};
use crate::{
    budget::{Budget, PIECE_WEIGHTS},
    error::Result,
    options::Options,
    progress::Progress,
    report::UnitReport,
    stored::unit_bytes::RunMemory,
    task::stopped,
};

/// Tasks, results, and the memory between them.
pub struct Flow<'a> {
    progress: &'a Progress,
    channels: Channels,
    pieces: Vec<EncodedPiece>,
    /// Pieces that wait for an earlier one, by unit and index in it.
    waiting: Vec<(usize, usize, EncodedPiece)>,
    runs: Vec<RunMemory>,
    /// In the order in which they were begun.
    open: VecDeque<Open>,
    /// Units that may be open at a time.
    most_open: usize,
    /// Weights that are enough to do for all workers, and spans that may be unchecked.
    enough_weights: u64,
    most_unchecked: usize,
    /// Memory of finished units.
    pub spares: Spares,
    /// What is final.
    pub ledger: Ledger<'a>,
}

/// The ends of channels at which a job's order is kept.
pub struct Channels {
    /// Filled spans from the reader.
    pub spans: Receiver<Result<Span>>,
    /// Takes tasks.
    pub tasks: Sender<Task>,
    /// Takes pieces to write.
    pub finished: Sender<Finished>,
    /// Brings what became of them.
    pub done: Receiver<Done>,
}

impl<'a> Flow<'a> {
    /// Tasks of a kind in work at the same time: one for each worker, and some that wait for their turn. Of pieces one more.
    pub fn width(budget: &Budget) -> usize {
        budget.threads + 2
    }

    /// Nothing in work. There are so many spans at a time.
    pub fn new(
        (budget, spans_at_a_time): (&Budget, usize),
        progress: &'a Progress,
        channels: Channels,
        ledger: Ledger<'a>,
        options: &Options,
    ) -> Self {
        let width = Self::width(budget);
        let most_open = width + 1;
        Self {
            progress,
            channels,
            // One is being written.
            pieces: (0..=width)
                .map(|_| EncodedPiece::with_capacity(PIECE_WEIGHTS as usize))
                .collect(),
            waiting: Vec::with_capacity(width + 1),
            runs: (0..width).map(|_| RunMemory::default()).collect(),
            open: VecDeque::with_capacity(most_open),
            most_open,
            enough_weights: width as u64 * PIECE_WEIGHTS,
            most_unchecked: spans_at_a_time / 2,
            spares: Spares::new(options, most_open),
            ledger,
        }
    }

    /// The next span from the reader. Takes the results of tasks until it is there.
    ///
    /// # Errors
    /// Those of reading; the first failure of any task; `E_CANCELLED`.
    pub fn next_span(&mut self) -> Result<Span> {
        loop {
            self.progress.check_cancelled()?;
            select! {
                recv(self.channels.done) -> done => self.take(done.map_err(|_| stopped())?)?,
                recv(self.channels.spans) -> span => return received(span, self.progress),
            }
        }
    }

    /// Waits until another unit can be begun.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn make_room(&mut self) -> Result<()> {
        self.wait_until_open(self.most_open - 1)
    }

    /// Waits until everything is written, checked and committed.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn drain(&mut self) -> Result<()> {
        self.wait_until_open(0)
    }

    fn wait_until_open(&mut self, at_most: usize) -> Result<()> {
        while self.open.len() > at_most {
            self.take_one()?;
        }
        Ok(())
    }

    /// Makes a unit known to the tasks to come.
    pub fn begin(&mut self, unit: ActiveUnit) -> Arc<ActiveUnit> {
        let unit = self.spares.share(unit);
        let verification = self.spares.verification();
        self.open
            .push_back(Open::new(Arc::clone(&unit), verification));
        unit
    }

    /// Encodes a span, the weights of a unit from `start` on; whole pieces but for the unit's end. What it becomes may still be encoded, written
    /// and checked when this returns.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn span(&mut self, unit: &Arc<ActiveUnit>, span: Span, start: u64) -> Result<()> {
        while self.is_behind() {
            self.take_one()?;
        }
        let span = Arc::new(span);
        let (first, pieces) = ((start / PIECE_WEIGHTS) as usize, span.pieces().len());
        if unit.tables.is_some()
            && let Some(open) = self.open(unit.index)
        {
            open.verification.add(&span, start, first + pieces - 1);
        }
        for in_span in 0..pieces {
            let memory = loop {
                self.progress.check_cancelled()?;
                match self.pieces.pop() {
                    Some(memory) => break memory,
                    None => self.take_one()?,
                }
            };
            if let Some(open) = self.open(unit.index) {
                open.pieces += 1;
            }
            let task = Task::Encode {
                unit: Arc::clone(unit),
                span: Arc::clone(&span),
                in_span,
                piece: first + in_span,
                memory,
            };
            self.channels.tasks.send(task).map_err(|_| stopped())?;
        }
        Ok(())
    }

    /// Ends a unit whose pieces are all handed out.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn end(&mut self, unit: Arc<ActiveUnit>, report: UnitReport) -> Result<()> {
        let index = unit.index;
        // Nobody but its tasks knows it any more.
        drop(unit);
        if let Some(open) = self.open(index) {
            open.ended = Some(report);
        }
        self.commit()
    }

    fn open(&mut self, index: usize) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.unit.index == index)
    }

    /// Waits for a result.
    fn take_one(&mut self) -> Result<()> {
        self.progress.check_cancelled()?;
        let done = self.channels.done.recv().map_err(|_| stopped())?;
        self.take(done)
    }

    fn take(&mut self, done: Done) -> Result<()> {
        match done {
            Done::Encoded {
                unit,
                piece,
                memory,
                outcome,
            } => {
                outcome?;
                self.waiting.push((unit, piece, memory));
                self.append(unit)
            }
            Done::Written {
                unit,
                piece,
                memory,
                outcome,
            } => {
                let front = outcome?;
                self.pieces.push(memory);
                if let Some(open) = self.open(unit) {
                    open.written(piece, front);
                }
                self.check()?;
                self.commit()
            }
            Done::Checked {
                unit,
                memory,
                outcome,
            } => {
                outcome?;
                self.runs.push(memory);
                if let Some(open) = self.open(unit) {
                    open.checks -= 1;
                }
                self.check()?;
                self.commit()
            }
        }
    }

    /// Gives the writer those pieces of a unit that are next in order.
    fn append(&mut self, index: usize) -> Result<()> {
        let Some(open) = self.open.iter_mut().find(|open| open.unit.index == index) else {
            return Ok(());
        };
        let next = |waiting: &[(usize, usize, EncodedPiece)], next| {
            waiting
                .iter()
                .position(|(unit, piece, _)| (*unit, *piece) == (index, next))
        };
        while let Some(found) = next(&self.waiting, open.stream.appended()) {
            let (_, in_unit, mut piece) = self.waiting.swap_remove(found);
            open.stream.append(&mut piece);
            let finished = Finished {
                unit: Arc::clone(&open.unit),
                index: in_unit,
                piece,
            };
            self.channels
                .finished
                .send(finished)
                .map_err(|_| stopped())?;
        }
        Ok(())
    }

    /// Hands out the checks of what is written, as far as there is memory for them.
    fn check(&mut self) -> Result<()> {
        for open in &mut self.open {
            while let Some(memory) = self.runs.pop() {
                let Some(due) = open.next_check() else {
                    self.runs.push(memory);
                    break;
                };
                let task = Task::Check {
                    unit: Arc::clone(&open.unit),
                    due,
                    memory,
                };
                self.channels.tasks.send(task).map_err(|_| stopped())?;
            }
        }
        Ok(())
    }

    /// Whether checks are to catch up first: they keep the source in memory. One span may wait for them, or more while these are too short for
    /// all workers to have something to do, but the reader needs some too.
    fn is_behind(&self) -> bool {
        let unchecked = || {
            self.open
                .iter()
                .flat_map(|open| open.verification.unchecked())
        };
        let (spans, weights) = (unchecked().count(), unchecked().sum::<u64>());
        spans > 1 && (weights >= self.enough_weights || spans >= self.most_unchecked)
    }

    /// Commits the units of which nothing is left to do, in their order.
    fn commit(&mut self) -> Result<()> {
        while self.open.front().is_some_and(Open::is_done)
            && let Some(open) = self.open.pop_front()
        {
            let (index, regions) = (open.unit.index, open.stream.finish(&open.unit));
            self.spares.take(open.unit, open.verification);
            if let Some(report) = open.ended {
                self.ledger.commit_unit(index, regions, report)?;
            }
        }
        Ok(())
    }
}
