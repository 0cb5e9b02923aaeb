//! The journal beside a partial file (`NAME.journal`): who writes it, and what of it is finished. Records are only ever added.

mod frames;
mod holder;
mod records;

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use crate::{
    error::{Code, Error, Result},
    sync::lock,
    system,
};

use frames::{Frames, MARK};
pub use frames::{Kind, frame};
pub use holder::Holder;
pub use records::{Copied, Counted, Fingerprint, Record, TensorFacts, UnitDone};

/// What lies behind so many bytes is not read: the journal of a model of 10,000 units is shorter.
const MAX_JOURNAL: u64 = 64 << 20;

/// An open journal, to which records are added.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    end: Mutex<End>,
}

/// Where a journal goes on.
#[derive(Debug)]
struct End {
    /// Offset of the next record.
    at: u64,
    /// Memory for it.
    frame: Vec<u8>,
    /// Whether it tells of anything that is finished.
    has_finished: bool,
}

impl Journal {
    /// Where the journal of `target` lies. Its name is no longer than the partial file's.
    pub fn path_of(target: &Path) -> PathBuf {
        let mut name: OsString = target.file_name().unwrap_or_default().to_owned();
        name.push(".journal");
        target.with_file_name(name)
    }

    /// Opens the journal of `target`, new or left by an earlier run, with the records that it has.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN` where another file stands there; `E_READ`, `E_WRITE`, `E_NO_SPACE`.
    pub fn open(target: &Path) -> Result<(Self, Vec<Record>)> {
        let path = Self::path_of(target);
        let failed = |error: io::Error| Error::write(&path, &error).during("opening it");
        match fs::symlink_metadata(&path) {
            // A link leads to a file that has another name: not one of ours, whatever it holds.
            Ok(found) if !system::is_file_of_one_name(&found) => {
                return Err(foreign(&path));
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        let (kind, records, end) = parse_file(&file).map_err(|error| Error::read(&path, &error))?;
        if kind == Kind::Foreign {
            return Err(foreign(&path));
        }
        if !records.is_empty() {
            // What was torn must not be taken for a record that goes on behind the next one.
            file.set_len(end).map_err(failed)?;
        }
        let is_new = records.is_empty();
        let end = End {
            at: end,
            frame: Vec::new(),
            has_finished: records.iter().any(Record::is_finished),
        };
        let journal = Self {
            file,
            path,
            end: Mutex::new(end),
        };
        if is_new {
            // A full disk is left as it was.
            journal.restart().inspect_err(|_| journal.remove())?;
        }
        Ok((journal, records))
    }

    /// Forgets all records.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn restart(&self) -> Result<()> {
        let mut end = self.end();
        (end.at, end.has_finished) = (MARK.len() as u64, false);
        let emptied = self.file.set_len(0);
        let marked = emptied.and_then(|()| system::write_all_at(&self.file, MARK, 0));
        marked.map_err(|error| self.failed(&error))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn add(&self, record: &Record) -> Result<()> {
        let mut end = self.end();
        let End { at, frame, .. } = &mut *end;
        let framed = frames::frame(*at, frame, |payload| serde_json::to_writer(payload, record));
        framed.map_err(|error| self.failed(&error.into()))?;
        system::write_all_at(&self.file, frame, *at).map_err(|error| self.failed(&error))?;
        end.at += end.frame.len() as u64;
        end.has_finished |= record.is_finished();
        Ok(())
    }

    /// Whether it tells of anything that is finished.
    pub fn has_finished(&self) -> bool {
        self.end().has_finished
    }

    /// Flushes it to the disk.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(|error| self.failed(&error).during("flushing it to the disk"))
    }

    /// Takes it away, where it still stands there.
    pub fn remove(&self) {
        if system::is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        lock(&self.end)
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::write(&self.path, error)
    }
}

/// Removes a journal of ours that has no partial file: its run was killed at its very end.
pub fn tidy(target: &Path) {
    let path = Journal::path_of(target);
    let start = || {
        let found = fs::symlink_metadata(&path).ok()?;
        let is_one = system::is_file_of_one_name(&found);
        let mut start = Vec::new();
        let file = is_one.then(|| File::open(&path).ok()).flatten()?;
        file.take(MARK.len() as u64).read_to_end(&mut start).ok()?;
        Some(start)
    };
    if start().is_some_and(|start| frames::kind(&start) != Kind::Foreign) {
        let _ = fs::remove_file(&path);
    }
}

/// The records of the journal of `target`, as far as it can be read: others may be writing it.
pub fn look(target: &Path) -> Vec<Record> {
    let path = Journal::path_of(target);
    // Opening a pipe would wait for a writer.
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let read = || parse_file(&File::open(&path)?);
    let found = is_file.then(read).and_then(io::Result::ok);
    found.map_or_else(Vec::new, |(_, records, _)| records)
}

/// What a file is, its records, and where the next one goes. They end at the first that is torn, damaged or unknown.
///
/// # Errors
/// Those of reading the first bytes.
pub fn parse(mut reader: impl Read) -> io::Result<(Kind, Vec<Record>, u64)> {
    let mut start = Vec::new();
    (&mut reader)
        .take(MARK.len() as u64)
        .read_to_end(&mut start)?;
    let (kind, mut records) = (frames::kind(&start), Vec::new());
    let mut frames = Frames::new(reader);
    while let Some(payload) = (kind == Kind::Ours).then(|| frames.next()).flatten() {
        let Ok(record) = serde_json::from_slice(payload) else {
            break;
        };
        records.push(record);
        frames.taken();
    }
    Ok((kind, records, frames.end))
}

fn parse_file(file: &File) -> io::Result<(Kind, Vec<Record>, u64)> {
    parse(io::BufReader::new(file.take(MAX_JOURNAL)))
}

/// The refusal to touch what stands where a file of ours would go.
pub fn foreign(path: &Path) -> Error {
    let message = "this file is in the way, and it is not one that DFloat11 Compress left";
    Error::new(Code::PartialForeign, message)
        .hint("Rename or delete it.")
        .at_path(path)
}
