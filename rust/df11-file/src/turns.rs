//! Reading and flushing of a job whose source and target lie on one slow disk. They take turns there, each in large bursts: going to and fro
//! between the two files is what such a disk does worst.

use std::{
    path::Path,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::{plan::folder_of, system::disk};

/// A disk that writes less a second is a slow one: rotating ones stay below, others hardly do.
const SLOW_BYTES_A_SECOND: u64 = 300_000_000;
/// A turn to write is as large as the disk writes in this time: long beside the way from one file to the other, and nobody who stops
/// the job waits for more.
const TURN: Duration = Duration::from_millis(400);
/// Bytes of the smallest turn to write, also of the first, which shows how fast the disk is.
const LEAST_BYTES: u64 = 4 << 20;
/// Bytes of the largest.
const MOST_BYTES: u64 = 64 << 20;
/// By how much a turn is larger than the one before, at most: a disk with memory of its own takes small ones at once.
const GROWTH: u64 = 4;

/// Whose turn it is.
#[derive(Debug)]
pub struct Turns {
    /// Source and target lie on one disk.
    shared: bool,
    /// They take turns. What the system calls the disk decides until it was measured.
    on: AtomicBool,
    turn: RwLock<()>,
    /// Bytes a second of the last flush; 0 before the first.
    rate: AtomicU64,
    /// Bytes of the next turn to write.
    burst: AtomicU64,
}

/// For two disks.
impl Default for Turns {
    fn default() -> Self {
        Self {
            shared: false,
            on: AtomicBool::new(false),
            turn: RwLock::default(),
            rate: AtomicU64::new(0),
            burst: AtomicU64::new(LEAST_BYTES),
        }
    }
}

impl Turns {
    /// For a source and a target.
    pub fn new(source: &Path, target: &Path) -> Self {
        let shared = disk::is_shared(source, &folder_of(target)) == Some(true);
        Self {
            shared,
            on: AtomicBool::new(shared && disk::is_rotating(source) == Some(true)),
            ..Self::default()
        }
    }

    /// Reads a piece, not while a flush has its turn.
    pub fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        let _turn = self
            .on
            .load(Relaxed)
            .then(|| self.turn.read().unwrap_or_else(PoisonError::into_inner));
        read()
    }

    /// Flushes so many bytes, and sees by that how fast the disk is.
    pub fn flushing<T>(&self, bytes: u64, flush: impl FnOnce() -> T) -> T {
        let turn = self
            .on
            .load(Relaxed)
            .then(|| self.turn.write().unwrap_or_else(PoisonError::into_inner));
        let started = Instant::now();
        let outcome = flush();
        drop(turn);
        self.measured(bytes, started.elapsed());
        outcome
    }

    fn measured(&self, bytes: u64, time: Duration) {
        let rate = (bytes as f64 / time.as_secs_f64().max(1e-9)) as u64;
        self.rate.store(rate.max(1), Relaxed);
        self.on
            .store(self.shared && rate < SLOW_BYTES_A_SECOND, Relaxed);
        let most = (self.burst() * GROWTH).min(MOST_BYTES);
        let wanted = (rate as f64 * TURN.as_secs_f64()) as u64;
        self.burst.store(wanted.clamp(LEAST_BYTES, most), Relaxed);
    }

    /// Bytes that may wait to be flushed.
    pub fn burst(&self) -> u64 {
        self.burst.load(Relaxed)
    }

    /// What was done, where they took turns on a disk that was measured.
    pub fn note(&self) -> Option<String> {
        let rate = self.rate.load(Relaxed);
        (self.on.load(Relaxed) && rate > 0).then(|| {
            format!(
                "source and result share a disk that wrote {:.0} MB/s: reading and writing took turns; with the result on another disk it would go faster",
                rate as f64 / 1e6
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread};

    use super::*;

    const MB: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    fn shared(on: bool) -> Turns {
        Turns {
            shared: true,
            on: AtomicBool::new(on),
            ..Turns::default()
        }
    }

    #[test]
    fn the_measured_rate_decides() {
        let turns = shared(true);
        turns.measured(900 * MB, SECOND);
        assert!(!turns.on.load(Relaxed), "called a rotating one, but fast");
        assert_eq!(turns.note(), None);
        turns.measured(50 * MB, SECOND);
        assert!(turns.on.load(Relaxed));
        assert!(turns.note().is_some_and(|note| note.contains("50 MB/s")));
        let apart = Turns::default();
        apart.measured(50 * MB, SECOND);
        assert!(!apart.on.load(Relaxed), "two disks");
        assert_eq!(apart.note(), None);
    }

    #[test]
    fn a_turn_is_as_large_as_the_disk_is_fast() {
        let turns = Turns::default();
        assert_eq!(turns.burst(), LEAST_BYTES);
        for (rate, bytes) in [
            (1, LEAST_BYTES),
            (5000, 16 << 20),
            (50, 20 * MB),
            (5000, MOST_BYTES),
        ] {
            turns.measured(rate * MB, SECOND);
            assert_eq!(turns.burst(), bytes);
        }
    }

    #[test]
    fn nothing_is_read_during_a_flush() {
        for on in [true, false] {
            let turns = shared(on);
            let (tell, told) = channel();
            thread::scope(|scope| {
                let reader = &turns;
                turns.flushing(u64::MAX, || {
                    scope.spawn(move || reader.reading(|| tell.send(())));
                    let read = told.recv_timeout(Duration::from_millis(100));
                    assert_eq!(read.is_err(), on);
                });
            });
            assert!(!on || told.recv().is_ok(), "it is read afterwards");
        }
    }

    #[test]
    fn two_disks_take_no_turns() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            Turns::new(&file, &folder.path().join("other")).shared,
            cfg!(unix)
        );
        assert!(!Turns::new(&file, Path::new("/proc/other")).shared);
    }
}
