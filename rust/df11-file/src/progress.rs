//! Counters of a running job, and the request to stop it. No lock, no callback: whoever shows progress polls a snapshot.

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{
            AtomicBool, AtomicU8, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use crate::{
    error::{Code, Error, Result},
    sync::lock,
    system::reserve,
};

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Looking whether the target already is the result.
    Checking,
    /// The extra pass that exact headers need.
    Reading,
    /// Encoding, writing, verifying.
    Compressing,
    /// Decoding and writing.
    Restoring,
    /// Writing the header, flushing, renaming.
    Finishing,
    /// Ended.
    Done,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::Checking,
        Self::Reading,
        Self::Compressing,
        Self::Restoring,
        Self::Finishing,
        Self::Done,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checking => "checking",
            Self::Reading => "reading",
            Self::Compressing => "compressing",
            Self::Restoring => "restoring",
            Self::Finishing => "finishing",
            Self::Done => "done",
        }
    }
}

/// The state of a job at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// What it is doing.
    pub phase: Phase,
    /// Source bytes finished, over all passes; converted tensors count with their new size.
    pub bytes_in: u64,
    /// Source bytes to finish, over all passes; 0 until known.
    pub bytes_total: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Units finished.
    pub units_done: u64,
    /// Units to finish; 0 until known.
    pub units: u64,
    /// Index of the unit in work, where there is one.
    pub unit: Option<u64>,
    /// Time since the start.
    pub elapsed: Duration,
}

/// The counters.
#[derive(Debug)]
pub struct Progress {
    cancelled: AtomicBool,
    phase: AtomicU8,
    /// Bytes done, counted once in each stage.
    work: AtomicU64,
    bytes_total: AtomicU64,
    /// Stages that every byte goes through.
    stages: AtomicU64,
    bytes_out: AtomicU64,
    units_done: AtomicU64,
    units: AtomicU64,
    /// Index of the unit in work plus one; 0 for none.
    unit: AtomicU64,
    started: Instant,
    end: AtomicU8,
    cleanup: Cleanup,
}

/// Nothing has decided how the job ends.
const OPEN: u8 = 0;
/// Its file is about to get its name.
const NAMED: u8 = 1;
/// Nobody waits for it any more.
const ABANDONED: u8 = 2;

/// What takes away the files of a job that cannot do so itself; none once it has ended.
struct Cleanup(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cleanup")
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Checking as u8),
            work: AtomicU64::new(0),
            bytes_total: AtomicU64::new(0),
            stages: AtomicU64::new(1),
            bytes_out: AtomicU64::new(0),
            units_done: AtomicU64::new(0),
            units: AtomicU64::new(0),
            unit: AtomicU64::new(0),
            started: Instant::now(),
            end: AtomicU8::new(OPEN),
            // Until it writes, and where it never does, there is nothing to take away.
            cleanup: Cleanup(Mutex::new(Some(Box::new(|| ())))),
        }
    }
}

impl Progress {
    /// Asks the job to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// An error where the job was asked to stop, or goes on with the reserve of memory.
    ///
    /// # Errors
    /// `E_CANCELLED`, `E_NO_MEMORY`.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Relaxed) {
            return Err(cancelled());
        }
        reserve::check()
    }

    /// From here on the job ends with its file under its name.
    ///
    /// # Errors
    /// `E_CANCELLED` where it was asked to stop before.
    pub(crate) fn pass_the_last_moment(&self) -> Result<()> {
        self.check_cancelled()?;
        let passed = self.end.compare_exchange(OPEN, NAMED, SeqCst, SeqCst);
        passed.map(|_| ()).map_err(|_| cancelled())
    }

    /// Sets what takes the job's files away where it is abandoned.
    pub(crate) fn on_abandon(&self, cleanup: impl FnOnce() + Send + 'static) {
        *lock(&self.cleanup.0) = Some(Box::new(cleanup));
    }

    /// The job has ended: what would take its files away holds one of them open, and so its space.
    pub(crate) fn forget_cleanup(&self) {
        *lock(&self.cleanup.0) = None;
    }

    /// Gives the job up, which was asked to stop and does not: a disk does not answer. What takes its files away; none where it must be waited for.
    pub(crate) fn abandon(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let cleanup = lock(&self.cleanup.0).take()?;
        let given_up = self.end.compare_exchange(OPEN, ABANDONED, SeqCst, SeqCst);
        given_up.is_ok().then_some(cleanup)
    }

    /// The state now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: Phase::ALL[usize::from(self.phase.load(Relaxed))],
            bytes_in: self.work.load(Relaxed) / self.stages.load(Relaxed),
            bytes_total: self.bytes_total.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            units_done: self.units_done.load(Relaxed),
            units: self.units.load(Relaxed),
            unit: self.unit.load(Relaxed).checked_sub(1),
            elapsed: self.started.elapsed(),
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Sets the bytes to finish and the stages (read, encode or write, verify) that each of them goes through.
    pub(crate) fn set_total(&self, bytes: u64, stages: u64) {
        self.stages.store(stages, Relaxed);
        self.bytes_total.store(bytes, Relaxed);
    }

    /// Sets the units to finish.
    pub(crate) fn set_units(&self, units: usize) {
        self.units.store(units as u64, Relaxed);
    }

    /// Counts bytes that have gone through one stage.
    pub(crate) fn add_stage(&self, bytes: u64) {
        self.work.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that, once read, need no further stage.
    pub(crate) fn skip_stages(&self, bytes: u64) {
        self.add_stage(bytes * (self.stages.load(Relaxed) - 1));
    }

    /// Counts bytes that were finished before, through all stages.
    pub(crate) fn take_over(&self, bytes: u64) {
        self.add_stage(bytes * self.stages.load(Relaxed));
    }

    /// Counts from nothing: what came before was another kind of work.
    pub(crate) fn begin_again(&self) {
        self.work.store(0, Relaxed);
    }

    /// Returns how many were written in all.
    pub(crate) fn add_out(&self, bytes: u64) -> u64 {
        self.bytes_out.fetch_add(bytes, Relaxed) + bytes
    }

    pub(crate) fn enter_unit(&self, index: usize) {
        self.unit.store(index as u64 + 1, Relaxed);
    }

    pub(crate) fn leave_unit(&self) {
        self.unit.store(0, Relaxed);
    }

    pub(crate) fn unit_done(&self) {
        self.units_done.fetch_add(1, Relaxed);
    }
}

/// The error of work that was asked to stop.
pub(crate) fn cancelled() -> Error {
    Error::new(
        Code::Cancelled,
        "stopped on request; nothing was left behind",
    )
}
