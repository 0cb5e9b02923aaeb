//! Rates of a folder's disk and of a source: buffered positioned I/O of 1 MiB, as a compression does it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;

use super::Stop;
use crate::{
    error::{Code, Error, Result},
    progress::cancelled,
    source::Source,
    system,
};

/// Bytes of one call.
const CALL: usize = 1 << 20;
/// A measurement ends after this time, whatever it has seen.
const LIMIT: Duration = Duration::from_secs(3);
/// The scratch file takes at most this part of the free space.
const PART_OF_FREE: u64 = 4;
/// Least free space; with less nothing is written.
const LEAST_FREE: u64 = 256 << 20;
/// Bytes between two flushes. A slow disk is then at most three times this behind when the time is up.
const FLUSH: u64 = 16 << 20;
/// Places of a large source that are read. 11, by which they are gone through, must have no factor in common with it.
const PLACES: u64 = 32;

/// Bytes moved, and in what time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Transfer {
    /// Bytes read or written.
    pub bytes: u64,
    /// The time it took.
    pub seconds: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Of the bytes read, how many the system says came from a disk rather than from its memory; none where it does not say.
    pub from_disk: Option<u64>,
}

impl Transfer {
    fn since(began: Instant, bytes: u64) -> Self {
        let seconds = began.elapsed().as_secs_f64().max(1e-9);
        Self {
            bytes,
            seconds,
            bytes_per_second: bytes as f64 / seconds,
            from_disk: None,
        }
    }

    /// True where nearly all came from a disk, false where nearly nothing did.
    pub fn was_from_disk(&self) -> Option<bool> {
        let part = self.from_disk? as f64 / self.bytes.max(1) as f64;
        (!(0.1..0.9).contains(&part)).then_some(part > 0.5)
    }
}

/// A new file without a name, where the system allows that: whatever ends the program, it is gone.
pub struct Scratch {
    file: File,
    path: PathBuf,
    /// The name could not be taken away at once.
    named: bool,
    bytes: u64,
}

impl Scratch {
    /// Creates one in `folder`, for at most `most` bytes.
    ///
    /// # Errors
    /// `E_NO_SPACE` below 256 MiB of free space, `E_WRITE`.
    pub fn create(folder: &Path, most: u64) -> Result<Self> {
        let free = system::free_space(folder).unwrap_or(u64::MAX);
        if folder.is_dir() && free < LEAST_FREE {
            let message = format!(
                "the disk has {} MB left, too little to measure it",
                free / 1_000_000
            );
            return Err(Error::new(Code::NoSpace, message)
                .hint("Free some space or choose another folder.")
                .at_path(folder));
        }
        let name = |number: u32| folder.join(format!("df11-bench-{}-{number}.tmp", process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let mut number = 0;
        let file = loop {
            match options.open(name(number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => {
                    number += 1;
                }
                opened => break opened.map_err(|error| Error::write(&name(number), &error))?,
            }
        };
        let path = name(number);
        Ok(Self {
            file,
            named: fs::remove_file(&path).is_err(),
            path,
            bytes: (free / PART_OF_FREE).min(most) / CALL as u64 * CALL as u64,
        })
    }

    /// Fills it with `data` over and over and flushes it.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`, `E_CANCELLED`.
    pub fn write(&self, data: &[u8], stop: Stop<'_>) -> Result<Transfer> {
        let began = Instant::now();
        let failed = |error: io::Error| Error::write(&self.path, &error);
        // As a compression does, a thread of its own flushes while this one goes on.
        let (ask, asked) = std::sync::mpsc::sync_channel::<()>(1);
        let written = thread::scope(|scope| {
            let flushing =
                scope.spawn(move || asked.iter().try_for_each(|()| self.file.sync_data()));
            let mut written = 0;
            for piece in data.chunks_exact(CALL).cycle() {
                if written >= self.bytes || began.elapsed() >= LIMIT {
                    break;
                }
                if stop() {
                    return Err(cancelled());
                }
                system::write_all_at(&self.file, piece, written).map_err(failed)?;
                written += CALL as u64;
                if written % FLUSH == 0 && ask.send(()).is_err() {
                    break;
                }
            }
            drop(ask);
            let stopped = |_| Error::new(Code::Internal, "the flushing thread stopped");
            flushing.join().map_err(stopped)?.map_err(failed)?;
            Ok(written)
        })?;
        self.file.sync_all().map_err(failed)?;
        Ok(Transfer::since(began, written))
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// `E_READ`, `E_CANCELLED`.
    pub fn read(&self, bytes: u64, stop: Stop<'_>) -> Result<Transfer> {
        let whole = std::iter::once((0, bytes));
        read(whole, stop, |buffer, offset| {
            system::read_exact_at(&self.file, buffer, offset)
                .map_err(|error| Error::read(&self.path, &error))
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Reads parts of a source, up to `most` bytes from places all over it.
///
/// # Errors
/// Those of the source, `E_CANCELLED`.
pub fn read_source(source: &Source, most: u64, stop: Stop<'_>) -> Result<Transfer> {
    let ends = source.header().tensors.iter().map(|tensor| tensor.end);
    let places = places(ends.max().unwrap_or(0), most, jitter());
    read(places.into_iter(), stop, |buffer, offset| {
        source.read(buffer, offset)
    })
}

/// Places (offset, bytes) in data of `bytes` bytes, together at most `most`; neighbours are far from each other in time, so that all parts
/// have been seen when time runs out. `jitter` in 0 to 1 moves them, so that a second run does not find in memory what the first has read.
fn places(bytes: u64, most: u64, jitter: f64) -> Vec<(u64, u64)> {
    if bytes <= most {
        return vec![(0, bytes)];
    }
    let (apart, length) = (bytes / PLACES, most / PLACES);
    let shift = ((apart - length) as f64 * jitter) as u64;
    let offset = |index| index * 11 % PLACES * apart + shift;
    (0..PLACES).map(|index| (offset(index), length)).collect()
}

fn jitter() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0.0, |now| f64::from(now.subsec_nanos()) / 1e9)
}

fn read(
    mut places: impl Iterator<Item = (u64, u64)>,
    stop: Stop<'_>,
    mut read_at: impl FnMut(&mut [u8], u64) -> Result<()>,
) -> Result<Transfer> {
    let mut buffer = vec![0; CALL];
    let before = system::device_bytes_read();
    let (began, mut bytes) = (Instant::now(), 0);
    places.try_for_each(|(offset, length)| {
        let end = offset + length;
        let mut at = offset;
        while at < end && began.elapsed() < LIMIT {
            if stop() {
                return Err(cancelled());
            }
            let call = CALL.min((end - at) as usize);
            read_at(&mut buffer[..call], at)?;
            at += call as u64;
            bytes += call as u64;
        }
        Ok(())
    })?;
    let transfer = Transfer::since(began, bytes);
    let from_disk =
        before.and_then(|before| Some(system::device_bytes_read()?.saturating_sub(before)));
    Ok(Transfer {
        // The system reads ahead.
        from_disk: from_disk.map(|from_disk| from_disk.min(bytes)),
        ..transfer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_inside_and_apart() {
        const MOST: u64 = 1 << 30;
        assert_eq!(places(0, MOST, 0.5), [(0, 0)]);
        assert_eq!(places(MOST, MOST, 0.5), [(0, MOST)]);
        for bytes in [MOST + 1, 3 * MOST, 24_000_000_000] {
            for jitter in [0.0, 0.5, 0.999_999] {
                let mut places = places(bytes, MOST, jitter);
                places.sort_unstable();
                assert_eq!(places.iter().map(|place| place.1).sum::<u64>(), MOST);
                assert!(
                    places
                        .windows(2)
                        .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
                );
                assert!(places.last().is_some_and(|last| last.0 + last.1 <= bytes));
            }
        }
    }

    #[test]
    fn where_bytes_came_from() {
        let transfer = |from_disk| Transfer {
            from_disk,
            ..Transfer::since(Instant::now(), 100)
        };
        let answers =
            [None, Some(0), Some(50), Some(95)].map(|from| transfer(from).was_from_disk());
        assert_eq!(answers, [None, Some(false), None, Some(true)]);
    }

    #[test]
    fn a_scratch_file_has_no_name_and_stops_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(folder.path(), 1 << 22).unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        let data = vec![1; 2 * CALL];
        let error = scratch.write(&data, &|| true).unwrap_err();
        assert_eq!(error.code, Code::Cancelled);
        let missing = folder.path().join("missing");
        let error = Scratch::create(&missing, 1 << 22).err().unwrap();
        assert_eq!(error.code, Code::Write);
    }
}
