//! Locks between the threads of a job.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex guards, also where a thread has ended badly while it held it: nothing here is left half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
