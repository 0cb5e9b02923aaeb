//! The worker threads: they encode and check what they are given, and know nothing of order.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crossbeam_channel::{Receiver, Sender};
use df11_codec::{EncodedPiece, encode_piece};

use super::{
    span::Span,
    unit::ActiveUnit,
    unit_check::{UnitCheck, wrong_bytes},
    verify::{BORDER_BYTES, Due},
    writer::Front,
};
use crate::{
    error::Result,
    fault,
    options::Verify,
    output::Output,
    plan::Plan,
    progress::Progress,
    stored::unit_bytes::{RunMemory, UnitBytes},
    task::stopped,
};

/// Something to do.
pub enum Task {
    /// Encode a piece.
    Encode {
        /// Its unit.
        unit: Arc<ActiveUnit>,
        /// The span that holds it.
        span: Arc<Span>,
        /// Its index in the span.
        in_span: usize,
        /// Its index in the unit.
        piece: usize,
        /// Memory for it.
        memory: EncodedPiece,
    },
    /// Check written kernel chunks.
    Check {
        /// Their unit.
        unit: Arc<ActiveUnit>,
        /// Which, and against what.
        due: Due,
        /// Memory for it.
        memory: RunMemory,
    },
}

/// What became of it; the memory comes back in any case.
pub enum Done {
    /// A piece is encoded.
    Encoded {
        /// Index of its unit.
        unit: usize,
        /// Its index in the unit.
        piece: usize,
        /// The piece.
        memory: EncodedPiece,
        /// How it went.
        outcome: Result<()>,
    },
    /// A piece is written.
    Written {
        /// Index of its unit.
        unit: usize,
        /// Its index in the unit.
        piece: usize,
        /// The memory.
        memory: EncodedPiece,
        /// How far the unit can be read back, where that has changed.
        outcome: Result<Option<Front>>,
    },
    /// Kernel chunks are as they should be, or not.
    Checked {
        /// Index of their unit.
        unit: usize,
        /// The memory.
        memory: RunMemory,
        /// How it went.
        outcome: Result<()>,
    },
}

/// What every worker knows.
pub struct Crew<'a> {
    /// The job's plan.
    pub plan: &'a Plan,
    /// Told what was done, and asked whether to stop.
    pub progress: &'a Progress,
    /// The result.
    pub file: &'a Output,
}

impl Crew<'_> {
    /// Does tasks until there are no more or nobody listens.
    pub fn work(&self, tasks: &Receiver<Task>, done: &Sender<Done>) {
        let mut border = Vec::with_capacity(match self.plan.options.verify {
            Verify::Full => BORDER_BYTES,
            Verify::Off => 0,
        });
        for task in tasks {
            if done.send(self.perform(task, &mut border)).is_err() {
                break;
            }
        }
    }

    /// Whoever hears of the end finds unit and span no longer shared with this task.
    fn perform(&self, task: Task, border: &mut Vec<u8>) -> Done {
        match task {
            Task::Encode {
                unit,
                span,
                in_span,
                piece,
                mut memory,
            } => {
                let outcome = guarded(|| {
                    fault::here("encode");
                    let weights = span.pieces().nth(in_span).unwrap_or_default();
                    let kernel = self.plan.options.kernel;
                    self.progress.check_cancelled()?;
                    let (code, starts) = (&unit.surveyed.code, &unit.surveyed.starts);
                    encode_piece(kernel, code, weights, starts[piece], &mut memory);
                    Ok(())
                });
                Done::Encoded {
                    unit: unit.index,
                    piece,
                    memory,
                    outcome,
                }
            }
            Task::Check {
                unit,
                due,
                mut memory,
            } => {
                let outcome = guarded(|| self.check(&unit, &due, (&mut memory, border)));
                Done::Checked {
                    unit: unit.index,
                    memory,
                    outcome,
                }
            }
        }
    }

    fn check(
        &self,
        unit: &ActiveUnit,
        due: &Due,
        (memory, border): (&mut RunMemory, &mut Vec<u8>),
    ) -> Result<()> {
        fault::here("check");
        let Some(tables) = &unit.tables else {
            return Ok(());
        };
        let plan = &self.plan.units[unit.index];
        let wrong = |message: &str| wrong_bytes(self.plan, message).in_unit(&plan.name);
        let check = UnitCheck {
            bytes: UnitBytes {
                read: &|buffer, offset| self.file.read(buffer, offset),
                place: unit.place,
                layout: unit.surveyed.code.layout(),
                fault: &wrong,
            },
            progress: self.progress,
            plan: self.plan,
            unit: plan,
        };
        if due.first == 0 {
            for (written, offset) in unit.small_tensors() {
                if !check.bytes.has(written, offset, memory)? {
                    return Err(wrong("its tables read back are not those written"));
                }
            }
        }
        let source = due.weights.bytes(border);
        check.run(tables, (due.first, due.end), source, memory)
    }
}

/// A fault in a task must neither end its thread nor keep anyone waiting.
pub fn guarded<T>(task: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|_| Err(stopped()))
}
