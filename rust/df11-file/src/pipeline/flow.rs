//! The thread that keeps the order: it hands out tasks, takes their results as they come, and puts them in order.
//!
//! Everything that goes through here has its memory before it starts. So the oldest piece can always finish, and nothing grows.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use df11_codec::EncodedPiece;

use super::{
    crew::{Done, Task},
    ledger::Ledger,
    span::Span,
    unit::{ActiveUnit, Spares},
    unit_stream::UnitStream,
    verify::Verification,
    writer::{Finished, Front},
};
use crate::{
    budget::{Budget, PIECE_WEIGHTS, SPANS},
    error::Result,
    options::{Options, Verify},
    progress::Progress,
    report::UnitReport,
    stored::unit_bytes::RunMemory,
    task::stopped,
};

/// A unit of which something is still to be done.
struct Open {
    unit: Arc<ActiveUnit>,
    stream: UnitStream,
    /// Pieces that were handed out and are not written.
    pieces: usize,
    /// Checks under way.
    checks: usize,
    /// How far it can be read back.
    front: Front,
    /// There once all pieces are handed out.
    ended: Option<UnitReport>,
}

/// Tasks, results, and the memory between them.
pub struct Flow<'a> {
    progress: &'a Progress,
    tasks: Sender<Task>,
    finished: Sender<Finished>,
    done: Receiver<Done>,
    pieces: Vec<EncodedPiece>,
    /// Pieces that wait for an earlier one, by unit and index in it.
    waiting: Vec<(usize, usize, EncodedPiece)>,
    runs: Vec<RunMemory>,
    verification: Verification,
    open: Vec<Open>,
    /// Memory of finished units.
    pub spares: Spares,
    /// What is final.
    pub ledger: Ledger<'a>,
}

impl<'a> Flow<'a> {
    /// Tasks of a kind in work at the same time: one for each worker, and some that wait for their turn. Of pieces one more.
    pub fn width(budget: &Budget) -> usize {
        budget.threads + 2
    }

    /// Nothing in work.
    pub fn new(
        budget: &Budget,
        progress: &'a Progress,
        (tasks, finished, done): (Sender<Task>, Sender<Finished>, Receiver<Done>),
        ledger: Ledger<'a>,
        options: &Options,
    ) -> Self {
        let width = Self::width(budget);
        // Each check belongs to one unit; and there is the unit that is being written.
        let checked = match options.verify {
            Verify::Off => 0,
            Verify::Full => width + 1,
        };
        Self {
            progress,
            tasks,
            finished,
            done,
            // One is being written.
            pieces: (0..=width)
                .map(|_| EncodedPiece::with_capacity(PIECE_WEIGHTS as usize))
                .collect(),
            waiting: Vec::with_capacity(width + 1),
            runs: (0..width).map(|_| RunMemory::default()).collect(),
            verification: Verification::default(),
            open: Vec::with_capacity(SPANS + width),
            spares: Spares::new(options.kernel, checked),
            ledger,
        }
    }

    /// Makes a unit known to the tasks to come.
    pub fn begin(&mut self, unit: ActiveUnit) -> Arc<ActiveUnit> {
        let unit = self.spares.share(unit);
        self.verification.begin();
        self.open.push(Open {
            stream: UnitStream::new(&unit.place),
            unit: Arc::clone(&unit),
            pieces: 0,
            checks: 0,
            front: Front::default(),
            ended: None,
        });
        unit
    }

    /// Encodes a span, the weights of a unit from `start` on; whole pieces but for the unit's end. What is not checked may still be encoded and
    /// written when this returns; what is checked is written then, and being checked.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn span(&mut self, unit: &Arc<ActiveUnit>, span: &Arc<Span>, start: u64) -> Result<()> {
        let (first, pieces) = ((start / PIECE_WEIGHTS) as usize, span.pieces().len());
        let mut sent = 0;
        while sent < pieces {
            self.progress.check_cancelled()?;
            self.check(unit, span, start, false)?;
            let Some(memory) = self.pieces.pop() else {
                self.take_one()?;
                continue;
            };
            if let Some(open) = self.open(unit.index) {
                open.pieces += 1;
            }
            self.send(Task::Encode {
                unit: Arc::clone(unit),
                span: Arc::clone(span),
                in_span: sent,
                piece: first + sent,
                memory,
            })?;
            sent += 1;
        }
        if unit.tables.is_none() {
            return Ok(());
        }
        loop {
            let is_written = self.open(unit.index).is_some_and(|open| open.pieces == 0);
            if self.check(unit, span, start, is_written)? && is_written {
                break;
            }
            self.progress.check_cancelled()?;
            self.take_one()?;
        }
        let front = self.front(unit);
        self.verification.end_span(span, start, front);
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
        self.commit(index)
    }

    /// Waits until everything is written, checked and committed.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn drain(&mut self) -> Result<()> {
        while !self.open.is_empty() {
            self.progress.check_cancelled()?;
            self.take_one()?;
        }
        Ok(())
    }

    /// Hands out the checks of what is written. False where memory for more is missing.
    fn check(
        &mut self,
        unit: &Arc<ActiveUnit>,
        span: &Arc<Span>,
        start: u64,
        is_all: bool,
    ) -> Result<bool> {
        if unit.tables.is_none() {
            return Ok(true);
        }
        let front = self.front(unit);
        while let Some(memory) = self.runs.pop() {
            let Some(due) = self.verification.next(span, start, front, is_all) else {
                self.runs.push(memory);
                return Ok(true);
            };
            if let Some(open) = self.open(unit.index) {
                open.checks += 1;
            }
            self.send(Task::Check {
                unit: Arc::clone(unit),
                due,
                memory,
            })?;
        }
        Ok(false)
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
            self.finished.send(finished).map_err(|_| stopped())?;
        }
        Ok(())
    }

    fn open(&mut self, index: usize) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.unit.index == index)
    }

    fn front(&mut self, unit: &ActiveUnit) -> Front {
        let open = self.open(unit.index);
        open.map_or_else(Front::default, |open| open.front)
    }

    fn send(&self, task: Task) -> Result<()> {
        self.tasks.send(task).map_err(|_| stopped())
    }

    /// Waits for a result.
    fn take_one(&mut self) -> Result<()> {
        match self.done.recv().map_err(|_| stopped())? {
            Done::Encoded {
                unit,
                piece,
                memory,
                outcome,
            } => {
                outcome?;
                self.waiting.push((unit, piece, memory));
                self.append(unit)?;
            }
            Done::Written {
                unit,
                memory,
                outcome,
            } => {
                let front = outcome?;
                self.pieces.push(memory);
                if let Some(open) = self.open(unit) {
                    open.pieces -= 1;
                    open.front = front.unwrap_or(open.front);
                }
                self.commit(unit)?;
            }
            Done::Checked {
                unit,
                memory,
                carry,
                outcome,
            } => {
                outcome?;
                self.runs.push(memory);
                if let Some(carry) = carry {
                    self.verification.take(carry);
                }
                if let Some(open) = self.open(unit) {
                    open.checks -= 1;
                }
                self.commit(unit)?;
            }
        }
        Ok(())
    }

    /// Commits a unit of which nothing is left to encode, write or check.
    fn commit(&mut self, index: usize) -> Result<()> {
        let ready = |open: &Open| open.unit.index == index && open.pieces + open.checks == 0;
        let Some(found) = self.open.iter().position(ready) else {
            return Ok(());
        };
        if let Some(report) = self.open[found].ended.take() {
            let open = self.open.swap_remove(found);
            let regions = open.stream.finish(&open.unit);
            self.spares.take(open.unit);
            self.ledger.commit_unit(index, regions, report)?;
        }
        Ok(())
    }
}
