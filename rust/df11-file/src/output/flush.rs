//! Flushes what was written while the work goes on: the flush at the end stays short, also on a slow disk, and so does a stop.

use std::{
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use super::Output;
use crate::{
    error::Result,
    task::{spawn_scoped, stopped},
};

/// Bytes that may wait to be flushed.
const FLUSH_BYTES: u64 = 64 << 20;

/// Asks for a flush when enough was written.
pub struct FlushRequests {
    sender: SyncSender<()>,
    asked_at: u64,
}

impl FlushRequests {
    /// Told how many bytes were written in all.
    pub fn written(&mut self, bytes: u64) {
        // A full channel means that a flush is due anyway.
        if bytes >= self.asked_at + FLUSH_BYTES && self.sender.try_send(()).is_ok() {
            self.asked_at = bytes;
        }
    }
}

/// Does `work` while a thread flushes what it writes.
///
/// # Errors
/// Those of the work, then `E_WRITE`, `E_NO_SPACE` of the flush: the system reports a failed write once, to whoever flushes first.
pub fn while_flushing<T>(
    file: &Output,
    work: impl FnOnce(&mut FlushRequests) -> Result<T>,
) -> Result<T> {
    let (sender, receiver) = sync_channel(1);
    let mut requests = FlushRequests {
        sender,
        asked_at: 0,
    };
    thread::scope(|scope| {
        let flushing = spawn_scoped(scope, "df11-flush", move || {
            // Until nobody can ask any more.
            receiver.iter().try_for_each(|()| file.sync())
        })?;
        let outcome = work(&mut requests);
        drop(requests);
        let flushed = flushing.join().unwrap_or_else(|_| Err(stopped()));
        outcome.and_then(|done| flushed.map(|()| done))
    })
}
