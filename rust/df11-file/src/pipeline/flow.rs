//! The thread that keeps the order: it hands out tasks, takes their results as they come, and puts them in order.
//!
//! Everything that goes through here has its memory before it starts. So the oldest piece can always finish, and nothing grows.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use df11_codec::EncodedPiece;

use super::{
    crew::{Done, Task},
    encode::{Front, UnitWriter},
    ledger::Ledger,
    span::Span,
    unit::{ActiveUnit, Spares},
    verify::Verification,
};
use crate::{
    budget::{Budget, PIECE_WEIGHTS, SPANS},
    error::Result,
    options::{Options, Verify},
    output::Region,
    progress::Progress,
    report::UnitReport,
    stored::unit_bytes::RunMemory,
    task::stopped,
};

/// A unit of which something is still to be done.
struct Open {
    unit: Arc<ActiveUnit>,
    /// Checks under way.
    checks: usize,
    /// Its tensors, once all of them are written.
    written: Option<([Region; 6], UnitReport)>,
}

/// Tasks, results, and the memory between them.
pub struct Flow<'a> {
    progress: &'a Progress,
    tasks: Sender<Task>,
    done: Receiver<Done>,
    pieces: Vec<EncodedPiece>,
    /// Pieces that wait for an earlier one, by index.
    waiting: Vec<(usize, EncodedPiece)>,
    runs: Vec<RunMemory>,
    verification: Verification,
    open: Vec<Open>,
    /// Memory of finished units.
    pub spares: Spares,
    /// What is final.
    pub ledger: Ledger<'a>,
}

impl<'a> Flow<'a> {
    /// Tasks in work at the same time, of each kind: one for each worker, and some that wait for their turn.
    pub fn width(budget: &Budget) -> usize {
        budget.threads + 2
    }

    /// Nothing in work.
    pub fn new(
        budget: &Budget,
        progress: &'a Progress,
        (tasks, done): (Sender<Task>, Receiver<Done>),
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
            done,
            pieces: (0..width)
                .map(|_| EncodedPiece::with_capacity(PIECE_WEIGHTS as usize))
                .collect(),
            waiting: Vec::with_capacity(width),
            runs: (0..width).map(|_| RunMemory::default()).collect(),
            verification: Verification::default(),
            open: Vec::with_capacity(SPANS),
            spares: Spares::new(options.kernel, checked),
            ledger,
        }
    }

    /// Makes a unit known to the tasks to come.
    pub fn begin(&mut self, unit: ActiveUnit) -> Arc<ActiveUnit> {
        let unit = self.spares.share(unit);
        self.verification.begin();
        self.open.push(Open {
            unit: Arc::clone(&unit),
            checks: 0,
            written: None,
        });
        unit
    }

    /// Encodes a span, the weights of the writer's unit from `start` on; whole pieces but for the unit's end. Checks of what was written
    /// go on behind it, also when this returns.
    ///
    /// # Errors
    /// The first failure of any task; `E_CANCELLED`.
    pub fn span(
        &mut self,
        writer: &mut UnitWriter<'_>,
        span: &Arc<Span>,
        start: u64,
    ) -> Result<()> {
        let unit = Arc::clone(writer.unit());
        let pieces = span.pieces().len();
        let first = writer.appended();
        let mut sent = 0;
        while writer.appended() < first + pieces {
            self.progress.check_cancelled()?;
            self.check(&unit, span, start, writer.settled(), false)?;
            while let Some(memory) = (sent < pieces).then(|| self.pieces.pop()).flatten() {
                self.send(Task::Encode {
                    unit: Arc::clone(&unit),
                    span: Arc::clone(span),
                    in_span: sent,
                    piece: first + sent,
                    memory,
                })?;
                sent += 1;
            }
            self.take_one()?;
            let next = |waiting: &[(usize, EncodedPiece)], index| {
                waiting.iter().position(|(piece, _)| *piece == index)
            };
            while let Some(found) = next(&self.waiting, writer.appended()) {
                let (_, piece) = self.waiting.swap_remove(found);
                writer.append(&piece)?;
                self.pieces.push(piece);
            }
        }
        let front = writer.end_span()?;
        while !self.check(&unit, span, start, front, true)? {
            self.progress.check_cancelled()?;
            self.take_one()?;
        }
        if unit.tables.is_some() {
            self.verification.end_span(span, start, front);
        }
        Ok(())
    }

    /// Ends a unit that is written.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn end(&mut self, index: usize, regions: [Region; 6], report: UnitReport) -> Result<()> {
        if let Some(open) = self.open.iter_mut().find(|open| open.unit.index == index) {
            open.written = Some((regions, report));
        }
        self.commit(index)
    }

    /// Waits until everything is checked and committed.
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

    /// Hands out the checks that are due up to `front`. False where memory for more is missing.
    fn check(
        &mut self,
        unit: &Arc<ActiveUnit>,
        span: &Arc<Span>,
        start: u64,
        front: Front,
        is_all: bool,
    ) -> Result<bool> {
        if unit.tables.is_none() {
            return Ok(true);
        }
        while let Some(memory) = self.runs.pop() {
            let Some(due) = self.verification.next(span, start, front, is_all) else {
                self.runs.push(memory);
                return Ok(true);
            };
            if let Some(open) = self
                .open
                .iter_mut()
                .find(|open| Arc::ptr_eq(&open.unit, unit))
            {
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

    fn send(&self, task: Task) -> Result<()> {
        self.tasks.send(task).map_err(|_| stopped())
    }

    /// Waits for a result.
    fn take_one(&mut self) -> Result<()> {
        match self.done.recv().map_err(|_| stopped())? {
            Done::Encoded {
                piece,
                memory,
                outcome,
            } => {
                outcome?;
                self.waiting.push((piece, memory));
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
                if let Some(open) = self.open.iter_mut().find(|open| open.unit.index == unit) {
                    open.checks -= 1;
                }
                self.commit(unit)?;
            }
        }
        Ok(())
    }

    /// Commits a unit where it is written and no check of it is left.
    fn commit(&mut self, index: usize) -> Result<()> {
        let ready = |open: &Open| open.unit.index == index && open.checks == 0;
        let Some(found) = self.open.iter().position(ready) else {
            return Ok(());
        };
        if let Some((regions, report)) = self.open[found].written.take() {
            let open = self.open.swap_remove(found);
            self.spares.take(open.unit);
            self.ledger.commit_unit(index, regions, report)?;
        }
        Ok(())
    }
}
