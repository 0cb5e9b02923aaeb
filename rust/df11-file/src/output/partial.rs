//! The partial file: beside the target, marked as ours, locked, and renamed only when complete.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Mutex,
};

use fs4::{FileExt, TryLockError};

use crate::{
    error::{Code, Error, Result},
    journal::{self, Holder, Journal, Record, foreign},
    plan::{folder_of, target_exists},
    progress::Progress,
    sync::lock,
    system,
};

/// First bytes of every partial file of ours. As a safetensors header length they are absurd, so no loader takes the file for a model.
pub const MARKER: &[u8; 16] = b"DF11-PARTIAL/1\r\n";

/// A file being written, and its journal. Dropped before [`Self::commit`], both are removed, unless they were kept.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    journal: Journal,
    state: State,
    /// Held by who writes.
    turn: Mutex<()>,
}

/// What becomes of a partial file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unfinished,
    Kept,
    Committed,
}

impl PartialFile {
    /// Takes the partial file of `target`, new or left by an interrupted run, whose records are told. It is to be restarted or gone on with.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN` where a file without our marker stands there, `E_TARGET_BUSY` where another run holds it; `E_WRITE`, `E_NO_SPACE`.
    pub fn open(target: &Path) -> Result<(Self, Option<Vec<Record>>)> {
        let path = path_of(target);
        let (file, left) = open(&path)?;
        claim(&file, left, &path, target)?;
        if left && !is_ours(&file, target) {
            return Err(foreign(&path));
        }
        let opened = Journal::open(target);
        if opened.is_err() && !left {
            let _ = fs::remove_file(&path);
        }
        let (journal, records) = opened?;
        let partial = Self {
            file,
            path,
            target: target.to_path_buf(),
            journal,
            state: State::Unfinished,
            turn: Mutex::default(),
        };
        Ok((partial, left.then_some(records)))
    }

    /// Removes what a run has left that was killed after its file had got its name.
    pub fn tidy(target: &Path) {
        let path = path_of(target);
        if system::is_same_file(&path, target) {
            let _ = fs::remove_file(&path);
        }
        if fs::symlink_metadata(&path).is_err() {
            journal::tidy(target);
        }
    }

    /// Empties it, and its journal.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn restart(&self) -> Result<()> {
        self.journal.restart()?;
        self.go_on()?;
        let emptied = self.file.set_len(MARKER.len() as u64);
        emptied.map_err(|error| self.failed(&error))
    }

    /// Marks it as unfinished, whatever it was, and this process as the one that works on it.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn go_on(&self) -> Result<()> {
        self.note(&Record::Run(Holder::here()))?;
        self.write(MARKER, 0)
    }

    /// Removes it and its journal, to be called where this run cannot do so itself, unless something is left that it marks: `before` is to remove that.
    ///
    /// # Errors
    /// `E_WRITE` where the system does not give a second handle.
    pub fn remover<F: FnOnce() -> bool + Send>(
        &self,
        before: F,
    ) -> Result<impl FnOnce() + Send + use<F>> {
        let file = self.file.try_clone().map_err(|error| self.failed(&error))?;
        let (path, target) = (self.path.clone(), self.target.clone());
        Ok(move || {
            let is_ours = system::is_at(&file, &path);
            if is_ours && before() && fs::remove_file(path).is_ok() {
                journal::tidy(&target);
            }
        })
    }

    /// Adds a record to its journal.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn note(&self, record: &Record) -> Result<()> {
        self.journal.add(record)
    }

    /// Its size.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn bytes(&self) -> Result<u64> {
        let stat = self.file.metadata();
        let stat = stat.map_err(|error| Error::read(&self.path, &error))?;
        Ok(stat.len())
    }

    /// Refuses where the disk would not hold `needed` bytes. To be asked before the first write, and when an old partial file has gone.
    ///
    /// # Errors
    /// `E_NO_SPACE`.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        // What an interrupted run has written is there already.
        let needed = needed.saturating_sub(self.file.allocated_size().unwrap_or(0));
        check_space(&self.target, needed)
    }

    /// Writes `bytes` at `offset`. The system lets only one thread at a time write to a file, and some have the others wait in a loop that
    /// takes a core: here they sleep.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let _turn = lock(&self.turn);
        system::write_all_at(&self.file, bytes, offset).map_err(|error| self.failed(&error))
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        system::read_exact_at(&self.file, buffer, offset)
            .map_err(|error| Error::read(&self.path, &error))
    }

    /// Flushes everything to the disk: the data before what the journal says of it.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        self.sync_data()?;
        self.sync_journal()
    }

    fn sync_data(&self) -> Result<()> {
        let synced = self.file.sync_all();
        synced.map_err(|error| self.failed(&error).during("flushing it to the disk"))
    }

    /// Writes the header, which takes the marker's place, of a file of so many bytes.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn finish(&self, header: &[u8], bytes: u64) -> Result<()> {
        if let Some(start) = header.first_chunk() {
            self.note(&Record::Header(*start))?;
        }
        // The journal tells from now on that the file is ours; and little may be left to flush then.
        self.sync()?;
        self.write(header, 0)?;
        let cut = self.file.set_len(bytes);
        cut.map_err(|error| self.failed(&error))
    }

    /// Flushes it and gives it its name. An existing target survives unless `replace`.
    ///
    /// # Errors
    /// `E_TARGET_EXISTS` where the target appeared meanwhile, `E_WRITE`, `E_NO_SPACE`; `E_CANCELLED`.
    pub fn commit(&mut self, replace: bool, progress: &Progress) -> Result<()> {
        self.sync_data()?;
        progress.pass_the_last_moment()?;
        self.publish(replace)?;
        self.state = State::Committed;
        system::sync_folder(&folder_of(&self.target));
        Ok(())
    }

    /// Ends a failed run: after a failure that may pass, what is finished is kept, and the error says so. A full disk is given its space back.
    pub fn give_up(mut self, error: Error) -> Error {
        if self.keep(error.code) {
            return kept_in(&self.path, error);
        }
        error
    }

    /// Keeps it and its journal after a failure that may pass, where anything is finished: whether it does.
    pub fn keep(&mut self, failure: Code) -> bool {
        let may_pass = matches!(failure, Code::Read | Code::Write);
        let keeps = may_pass && self.journal.has_finished() && self.is_in_place();
        if keeps {
            self.state = State::Kept;
        }
        keeps
    }

    /// Flushes its journal to the disk.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync_journal(&self) -> Result<()> {
        self.journal.sync()
    }

    /// Leaves it and its journal where they are.
    pub fn leave(mut self) {
        self.state = State::Kept;
    }

    /// Whether it still has its name.
    pub fn is_in_place(&self) -> bool {
        system::is_at(&self.file, &self.path)
    }

    fn publish(&self, replace: bool) -> Result<()> {
        if !self.is_in_place() {
            return Err(taken_away(&self.path));
        }
        if !replace {
            // A hard link, unlike a rename, never overwrites.
            match fs::hard_link(&self.path, &self.target) {
                // Where the other name stays, the next run removes it.
                Ok(()) => return fs::remove_file(&self.path).or(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(target_exists(&self.target));
                }
                // Some file systems have no hard links.
                Err(_) if self.target.exists() => return Err(target_exists(&self.target)),
                Err(_) => {}
            }
        }
        let renamed = fs::rename(&self.path, &self.target);
        renamed
            .map_err(|error| Error::write(&self.target, &error).during("giving the file its name"))
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::write(&self.path, error)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if self.state == State::Kept {
            return;
        }
        if self.state == State::Unfinished && self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
        // Last: it may be what shows that the file is ours.
        self.journal.remove();
    }
}

/// Refuses where the disk of `target` would not hold `needed` bytes more.
///
/// # Errors
/// `E_NO_SPACE`.
pub fn check_space(target: &Path, needed: u64) -> Result<()> {
    match system::free_space(&folder_of(target)) {
        Some(free) if free < needed => {
            let message = format!(
                "the result needs about {} MB, the disk has {} MB left",
                needed / 1_000_000,
                free / 1_000_000
            );
            Err(Error::new(Code::NoSpace, message)
                .hint("Free some space or choose another folder.")
                .at_path(target))
        }
        _ => Ok(()),
    }
}

/// The failure to find what was written.
pub fn taken_away(path: &Path) -> Error {
    let message = "another program took the file away while it was being written";
    Error::new(Code::Write, message)
        .hint("Start again, or choose another name.")
        .at_path(path)
}

/// The error that ended a run of which something is kept at `path`.
pub fn kept_in(path: &Path, mut error: Error) -> Error {
    let kept = path.file_name().unwrap_or_default().display();
    let again = "start again, and it goes on from there";
    error.hint = format!(
        "{} What is finished is kept in {kept}: {again}.",
        error.hint
    );
    error
}

/// Where the partial form of `target` lies.
pub fn path_of(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    target.with_file_name(name)
}

/// Creates the file at `path`, or opens the one that is there, which the flag tells.
fn open(path: &Path) -> Result<(File, bool)> {
    let failed = |error| Error::write(path, &error).during("opening it");
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, false)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link leads to a file that has another name: not one of ours, whatever it holds.
            let found = fs::symlink_metadata(path).map_err(failed)?;
            if !system::is_file_of_one_name(&found) {
                return Err(foreign(path));
            }
            Ok((options.open(path).map_err(failed)?, true))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Makes the file at `path` ours for as long as it is open.
///
/// # Errors
/// `E_TARGET_BUSY` where another run holds it, with what is known of that run.
fn claim(file: &File, left: bool, path: &Path, target: &Path) -> Result<()> {
    let locked = FileExt::try_lock(file);
    // The run that held the lock may have taken the file away, or given it the target's name.
    if !system::is_at(file, path) {
        return Err(busy("another run has just ended here", target));
    }
    let holder = || {
        let mut records = journal::look(target).into_iter().rev();
        records.find_map(|record| match record {
            Record::Run(holder) => Some(holder),
            _ => None,
        })
    };
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let who =
                holder().map_or_else(String::new, |holder| format!(": {}", holder.describe()));
            Err(busy(
                &format!("another run is writing this file{who}"),
                target,
            ))
        }
        // Some file systems have no locks; a file that was created just now needs none to be ours.
        Err(TryLockError::Error(_)) => without_lock(left, holder, path),
    }
}

/// The same where the file system has no locks.
fn without_lock(left: bool, holder: impl FnOnce() -> Option<Holder>, path: &Path) -> Result<()> {
    if !left {
        return Ok(());
    }
    let who = match holder() {
        Some(holder) if holder.has_ended() => return Ok(()),
        Some(holder) => format!(" ({})", holder.describe()),
        None => String::new(),
    };
    let message = format!(
        "a run{who} has left this file, or is still writing it; this file system cannot tell"
    );
    Err(Error::new(Code::TargetBusy, message)
        .hint("If no other run is active, delete it.")
        .at_path(path))
}

fn busy(message: &str, target: &Path) -> Error {
    Error::new(Code::TargetBusy, message)
        .hint("Wait for it or stop it.")
        .at_path(target)
}

/// Whether a file that was left is one of ours: it has our marker, or the header that our journal announces. An empty one, of a run that was killed in
/// its first moment, holds nothing that could be lost.
fn is_ours(file: &File, target: &Path) -> bool {
    let mut start = Vec::new();
    let read = file.take(MARKER.len() as u64).read_to_end(&mut start);
    let is_announced = || {
        let records = journal::look(target);
        let mut headers = records.iter().filter_map(|record| match record {
            Record::Header(header) => Some(header),
            _ => None,
        });
        headers.any(|header| start == header)
    };
    read.is_ok() && (start.is_empty() || start == MARKER || is_announced())
}
