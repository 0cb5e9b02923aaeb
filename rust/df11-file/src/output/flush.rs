//! Flushes what was written while the work goes on: the flush at the end stays short, also on a slow disk, and so does a stop.

use std::{
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
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
pub struct FlushRequests<'a> {
    /// Takes how many bytes are to be flushed.
    sender: SyncSender<u64>,
    turns: &'a Turns,
    /// Bytes that were written when it asked last.
    asked_at: AtomicU64,
    /// Nobody flushes any more.
    ended: &'a AtomicBool,
}

impl FlushRequests<'_> {
    /// Told how many bytes were written in all, by whichever thread has written.
    ///
    /// # Errors
    /// Where a flush has failed, so that nobody goes on for nothing; how, [`while_flushing`] tells.
    pub fn written(&self, bytes: u64) -> Result<()> {
        if self.ended.load(Relaxed) {
            return Err(stopped());
        }
        let asked_at = self.asked_at.load(Relaxed);
        let new = bytes.saturating_sub(asked_at);
        let claim = || {
            let claimed = self
                .asked_at
                .compare_exchange(asked_at, bytes, Relaxed, Relaxed);
            claimed.is_ok()
        };
        // A full channel means that a flush is due anyway; these bytes are asked for later.
        if new >= self.turns.burst() && claim() && self.sender.try_send(new).is_err() {
            self.asked_at.fetch_sub(new, Relaxed);
        }
        Ok(())
    }
}

/// Says that the flushing thread has ended, however it ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Does `work` while a thread flushes what it writes.
///
/// # Errors
/// `E_WRITE`, `E_NO_SPACE` of the flush: the system reports a failed write once, to whoever flushes first. Else those of the work.
pub fn while_flushing<T>(
    file: &Output,
    turns: &Turns,
    work: impl FnOnce(&FlushRequests<'_>) -> Result<T>,
) -> Result<T> {
    let (sender, receiver) = sync_channel(1);
    let ended = AtomicBool::new(false);
    let requests = FlushRequests {
        sender,
        turns,
        asked_at: AtomicU64::new(0),
        ended: &ended,
    };
    thread::scope(|scope| {
        let ends = Ends(&ended);
        let flushing = spawn_scoped(scope, "df11-flush", move || {
            let _ends = ends;
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
        flushed.and(outcome)
    })
}
