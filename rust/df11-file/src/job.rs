//! A compression in a thread of its own.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::{
    error::{Code, Error, Result},
    pipeline::compress,
    plan::Plan,
    progress::{Progress, Snapshot},
    report::Report,
    system,
};

#[derive(Debug)]
struct Shared {
    plan: Plan,
    progress: Progress,
    outcome: Mutex<Option<Result<Report>>>,
    ended: Condvar,
}

impl Shared {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<Report>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running or ended compression. Dropping it asks it to stop.
#[derive(Debug)]
pub struct Job {
    shared: Arc<Shared>,
}

impl Job {
    /// Starts `plan` and returns at once.
    ///
    /// # Errors
    /// `E_NO_MEMORY` where no thread can be started.
    pub fn start(plan: Plan) -> Result<Self> {
        let (progress, outcome) = (Progress::default(), Mutex::new(None));
        let shared = Arc::new(Shared {
            plan,
            progress,
            outcome,
            ended: Condvar::new(),
        });
        let job = Self {
            shared: shared.clone(),
        };
        let run = move || {
            if shared.plan.options.low_priority {
                system::lower_thread_priority();
            }
            let result = catch_unwind(AssertUnwindSafe(|| {
                compress(&shared.plan, &shared.progress)
            }));
            let fault = |_| {
                Err(Error::new(
                    Code::Internal,
                    "a fault in DFloat11 Compress; nothing was left behind",
                )
                .hint("Please report it."))
            };
            *shared.outcome() = Some(result.unwrap_or_else(fault));
            shared.ended.notify_all();
        };
        let spawned = thread::Builder::new()
            .name("df11-job".to_owned())
            .spawn(run);
        spawned.map_err(|error| {
            Error::new(Code::NoMemory, format!("no thread can be started: {error}"))
        })?;
        Ok(job)
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// Its state now.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.progress.snapshot()
    }

    /// Asks it to stop. It ends within a second and leaves no file.
    pub fn cancel(&self) {
        self.shared.progress.cancel();
    }

    /// Waits until it has ended, at most `timeout`; true where it has.
    pub fn join(&self, timeout: Option<Duration>) -> bool {
        let running = |outcome: &mut Option<_>| outcome.is_none();
        let outcome = self.shared.outcome();
        match timeout {
            None => self
                .shared
                .ended
                .wait_while(outcome, running)
                .unwrap_or_else(PoisonError::into_inner)
                .is_some(),
            Some(timeout) => {
                let waited = self
                    .shared
                    .ended
                    .wait_timeout_while(outcome, timeout, running);
                waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
            }
        }
    }

    /// Waits for the end and gives the report.
    ///
    /// # Errors
    /// The job's own.
    pub fn result(&self) -> Result<Report> {
        self.join(None);
        let outcome = self.shared.outcome().clone();
        outcome.unwrap_or_else(|| Err(Error::new(Code::Internal, "the job has no outcome")))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancel();
    }
}
