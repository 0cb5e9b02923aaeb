//! Flushes what was written while the work goes on: the flush at the end stays short, also on a slow disk, and so does a stop.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::PartialFile;
use crate::{
    error::{Code, Error, Result},
    task::spawn_scoped,
};

/// Bytes that may wait to be flushed.
const FLUSH_BYTES: u64 = 64 << 20;

/// Asks for a flush when enough was written.
pub struct FlushRequests {
    sender: SyncSender<()>,
    asked_at: u64,
}

/// The two ends: one for the thread that writes, one for [`flush_on_request`].
pub fn channel() -> (FlushRequests, Receiver<()>) {
    let (sender, receiver) = sync_channel(1);
    (
        FlushRequests {
            sender,
            asked_at: 0,
        },
        receiver,
    )
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

/// Flushes as often as it is asked to, until nobody can ask any more.
///
/// # Errors
/// `E_WRITE`, `E_NO_SPACE`: the system reports a failed write once, to whoever flushes first.
pub fn flush_on_request(file: &PartialFile, requests: &Receiver<()>) -> Result<()> {
    requests.iter().try_for_each(|()| file.sync())
}

/// Does `work` while a thread flushes what it writes.
///
/// # Errors
/// Those of the work, then those of the flush.
pub fn while_flushing<T>(
    file: &PartialFile,
    work: impl FnOnce(&mut FlushRequests) -> Result<T>,
) -> Result<T> {
    let (mut requests, receiver) = channel();
    thread::scope(|scope| {
        let flushing = spawn_scoped(scope, "df11-flush", false, move || {
            flush_on_request(file, &receiver)
        })?;
        let outcome = work(&mut requests);
        drop(requests);
        let flushed = flushing
            .join()
            .unwrap_or_else(|_| Err(Error::new(Code::Internal, "a thread of the job stopped")));
        outcome.and_then(|done| flushed.map(|()| done))
    })
}
