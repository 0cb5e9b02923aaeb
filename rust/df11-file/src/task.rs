//! Long work in a thread of its own: watched, stopped, waited for.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::channel,
    },
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    error::{Code, Error, Result},
    progress::{Progress, Snapshot, cancelled},
    sync::lock,
    system::{self, reserve},
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
    /// Whether a thread sees to it that a request to stop is followed in time.
    is_stopping: AtomicBool,
}

/// A job that was asked to stop has so much time to do it well.
const STOP: Duration = Duration::from_millis(600);
/// To remove its files where it does not.
const REMOVE: Duration = Duration::from_millis(200);

impl<R> Shared<R> {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<R>>> {
        lock(&self.outcome)
    }

    /// Sets the outcome, where there is none yet.
    fn end(&self, outcome: Result<R>) {
        self.progress.forget_cleanup();
        self.outcome().get_or_insert(outcome);
        self.ended.notify_all();
    }

    /// Waits until there is an outcome, at most `timeout`; true where there is.
    fn wait(&self, timeout: Duration) -> bool {
        let running = |outcome: &mut Option<_>| outcome.is_none();
        let waited = self
            .ended
            .wait_timeout_while(self.outcome(), timeout, running);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }

    /// Ends a job that was asked to stop and hangs in a call to a disk that does not answer. Its threads end when that call does.
    fn stop(&self) {
        if self.wait(STOP) {
            return;
        }
        let Some(cleanup) = self.progress.abandon() else {
            return;
        };
        // It asks a disk too.
        let (tell, done) = channel();
        let removing = thread::Builder::new().spawn(move || {
            cleanup();
            let _ = tell.send(());
        });
        if removing.is_ok() {
            let _ = done.recv_timeout(REMOVE);
        }
        self.end(Err(cancelled()));
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
    /// `E_NO_MEMORY` where no thread can be started, or nothing can be put by.
    pub fn start(
        low_priority: bool,
        work: impl FnOnce(&Progress) -> Result<R> + Send + 'static,
    ) -> Result<Self> {
        reserve::fill()?;
        let shared = Arc::new(Shared {
            progress: Progress::default(),
            outcome: Mutex::new(None),
            ended: Condvar::new(),
            is_stopping: AtomicBool::new(false),
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
            shared.end(result.unwrap_or_else(fault));
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

    /// Asks it to stop. It ends within a second and leaves no file, also where a disk does not answer.
    pub fn cancel(&self) {
        stop(&self.shared);
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
                drop(outcome);
                self.shared.wait(timeout)
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

/// Asks a job to stop, and sees to it that it does, where a thread can be had for that.
fn stop<R: Send + 'static>(shared: &Arc<Shared<R>>) {
    shared.progress.cancel();
    if !shared.is_stopping.swap(true, Relaxed) && shared.outcome().is_none() {
        let shared = Arc::clone(shared);
        let _ = thread::Builder::new().spawn(move || shared.stop());
    }
}

/// Starts a thread that ends with `scope`, with the priority of the one that starts it.
///
/// # Errors
/// `E_NO_MEMORY` where no thread can be started, or the job goes on with the reserve of memory.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    // Its stack would take what was given back for small requests.
    reserve::check()?;
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
