//! Long work in a thread of its own: watched, stopped, waited for.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    error::{Code, Error, Result},
    progress::{Progress, Snapshot},
    system,
};

/// Stack of a job's other threads: several times what they use, and half of what they would get, which counts where memory is limited.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    /// Whether this thread gave way to others. The threads that it starts do so too: not every system hands a priority down.
    static LOW_PRIORITY: Cell<bool> = const { Cell::new(false) };
}

fn lower_priority(low: bool) {
    if low {
        system::lower_thread_priority();
        LOW_PRIORITY.set(true);
    }
}

#[derive(Debug)]
struct Shared<R> {
    progress: Progress,
    outcome: Mutex<Option<Result<R>>>,
    ended: Condvar,
}

impl<R> Shared<R> {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<R>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Running or ended work. Dropping it asks it to stop.
#[derive(Debug)]
pub struct Task<R> {
    shared: Arc<Shared<R>>,
}

impl<R: Clone + Send + 'static> Task<R> {
    /// Starts `work` and returns at once. With `low_priority` its threads give way to other programs.
    ///
    /// # Errors
    /// `E_NO_MEMORY` where no thread can be started.
    pub fn start(
        low_priority: bool,
        work: impl FnOnce(&Progress) -> Result<R> + Send + 'static,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            progress: Progress::default(),
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        });
        let task = Self {
            shared: shared.clone(),
        };
        let run = move || {
            lower_priority(low_priority);
            let result = catch_unwind(AssertUnwindSafe(|| work(&shared.progress)));
            let fault = |_| {
                Err(Error::new(
                    Code::Internal,
                    "a fault in DFloat11 Compress; nothing was left behind",
                ))
            };
            *shared.outcome() = Some(result.unwrap_or_else(fault));
            shared.ended.notify_all();
        };
        let spawned = thread::Builder::new()
            .name("df11-job".to_owned())
            .spawn(run);
        spawned.map_err(|error| no_thread(&error))?;
        Ok(task)
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

    /// Waits for the end and gives the result.
    ///
    /// # Errors
    /// The work's own.
    pub fn result(&self) -> Result<R> {
        self.join(None);
        let outcome = self.shared.outcome().clone();
        outcome.unwrap_or_else(|| Err(Error::new(Code::Internal, "the job has no outcome")))
    }
}

impl<R> Drop for Task<R> {
    fn drop(&mut self) {
        self.shared.progress.cancel();
    }
}

/// Starts a thread that ends with `scope`, with the priority of the one that starts it.
///
/// # Errors
/// `E_NO_MEMORY` where no thread can be started.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let low_priority = LOW_PRIORITY.get();
    let run = move || {
        lower_priority(low_priority);
        work()
    };
    let spawned = thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn_scoped(scope, run);
    spawned.map_err(|error| no_thread(&error))
}

/// The error for a thread that has ended in a way that it never should.
pub fn stopped() -> Error {
    Error::new(Code::Internal, "a thread of the job stopped")
}

fn no_thread(error: &std::io::Error) -> Error {
    Error::new(
        Code::NoMemory,
        format!("threads cannot be started: {error}"),
    )
    .hint("Close other programs, or allow fewer threads.")
}
