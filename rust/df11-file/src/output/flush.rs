//! Flushes what was written while the work goes on: the flush at the end stays short, also on a slow disk, and so does a stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use super::Output;
use crate::{
    error::Result,
    fault,
    task::{spawn_scoped, stopped},
    turns::Turns,
};

/// Asks for a flush when enough was written.
pub struct FlushRequests {
    /// Takes how many bytes are to be flushed.
    sender: SyncSender<u64>,
    turns: Arc<Turns>,
    /// Bytes that were written when it asked last.
    asked_at: AtomicU64,
}

impl FlushRequests {
    /// Told how many bytes were written in all.
    pub fn written(&self, bytes: u64) {
        // A full channel means that a flush is due anyway.
        let new = bytes.saturating_sub(self.asked_at.load(Relaxed));
        if new >= self.turns.burst() && self.sender.try_send(new).is_ok() {
            self.asked_at.store(bytes, Relaxed);
        }
    }
}

/// Does `work` while a thread flushes what it writes.
///
/// # Errors
/// Those of the work, then `E_WRITE`, `E_NO_SPACE` of the flush: the system reports a failed write once, to whoever flushes first.
pub fn while_flushing<T>(
    file: &Output,
    turns: &Arc<Turns>,
    work: impl FnOnce(&FlushRequests) -> Result<T>,
) -> Result<T> {
    let (sender, receiver) = sync_channel(1);
    let requests = FlushRequests {
        sender,
        turns: Arc::clone(turns),
        asked_at: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        let flushing = spawn_scoped(scope, "df11-flush", move || {
            // Until nobody can ask any more.
            let mut due = receiver.iter();
            due.try_for_each(|bytes| {
                fault::here("flush");
                turns.flushing(bytes, || file.sync())
            })
        })?;
        let outcome = work(&requests);
        drop(requests);
        let flushed = flushing.join().unwrap_or_else(|_| Err(stopped()));
        outcome.and_then(|done| flushed.map(|()| done))
    })
}
