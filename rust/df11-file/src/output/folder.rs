//! The partial folder: beside the target, marked as ours, locked, and renamed only when complete.

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fs4::FileExt;

use super::{
    FileHeader, FileNames, PartialFile,
    form::place,
    open_files::OpenFiles,
    partial::{check_space, kept_in, path_of, taken_away},
};
use crate::{
    error::{Code, Error, Result},
    journal::{Record, foreign},
    plan::{folder_of, is_df11_folder, is_taken, target_exists},
    progress::Progress,
    system,
};

/// In it, the marked and locked file and its journal have this name, which no other file can have, with the endings of partial files and journals.
const LOCK: &str = ".df11";
const MARKS: [&str; 2] = [".df11.partial", ".df11.journal"];
/// What a file of tensors begins with until it has a header.
const NO_HEADER: &[u8; 8] = &[0; 8];

/// A folder being written. Dropped before [`Self::commit`], it is removed, unless it was kept.
#[derive(Debug)]
pub struct PartialFolder {
    path: PathBuf,
    target: PathBuf,
    /// Marks it as ours and keeps its journal; none where it has its name or is kept.
    lock: Option<PartialFile>,
    /// Names of files that are ours: those to be written, and those of the run that has left the folder. No other is ever touched.
    ours: Arc<HashSet<String>>,
    /// Those of tensors first.
    files: OpenFiles,
    /// How many files of tensors there are.
    tensors: usize,
}

impl PartialFolder {
    /// Takes the partial folder of `target` for files of these names, new or left by an interrupted run, whose records are told. It is to be restarted or
    /// gone on with.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN` where something without our marker stands there, or anything that is not ours in it; `E_TARGET_BUSY` where another run holds it;
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn open(target: &Path, names: FileNames) -> Result<(Self, Option<Vec<Record>>)> {
        let path = path_of(target);
        let failed = |error| Error::write(&path, &error);
        let is_left = match fs::create_dir(&path) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let kind = fs::symlink_metadata(&path).map_err(failed)?.file_type();
                if !kind.is_dir() || !is_marked(&path).map_err(failed)? {
                    return Err(foreign(&path));
                }
                true
            }
            Err(error) => return Err(failed(error)),
        };
        let marker = path.join(LOCK);
        let (lock, records) = PartialFile::open(&marker).map_err(|mut error| {
            // Where anything is in it, it stays.
            let _ = fs::remove_dir(&path);
            if error.code == Code::TargetBusy {
                let is_held = error.path.as_ref() == Some(&marker);
                let place = if is_held { target } else { path.as_path() };
                error.path = Some(place.to_path_buf());
            }
            error
        })?;
        let tensors = names.tensors.len();
        let mut all = names.tensors;
        all.extend(names.others);
        let mut ours: HashSet<String> = all.iter().cloned().collect();
        for record in records.iter().flatten() {
            if let Record::Files(names) = record {
                ours.extend(names.iter().cloned());
            }
        }
        if let Err(error) = check_ours(&path, &ours) {
            lock.leave();
            return Err(error);
        }
        let folder = Self {
            files: OpenFiles::new(&path, all),
            tensors,
            path,
            target: target.to_path_buf(),
            lock: Some(lock),
            ours: Arc::new(ours),
        };
        Ok((folder, is_left.then(|| records.unwrap_or_default())))
    }

    /// Removes the marks of a run that was killed when its folder had just got its name.
    pub fn tidy(target: &Path) {
        // In a partial folder, should that be named as a target, they mark what can be gone on with.
        if target.extension().is_some_and(|ending| ending == "partial") {
            return;
        }
        let marker = target.join(LOCK);
        if fs::symlink_metadata(path_of(&marker)).is_ok() {
            // One that is held is about to be removed; one that is opened is, as soon as it is dropped.
            drop(PartialFile::open(&marker));
        }
        PartialFile::tidy(&marker);
    }

    /// Removes all files, and what the journal tells of them.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn restart(&self) -> Result<()> {
        self.clear(|_| false)?;
        self.marker()?.restart()?;
        self.note(&Record::Files(self.files.names().to_vec()))
    }

    /// Goes on with what an interrupted run has left. Files that hold no tensors are written anew.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn go_on(&self) -> Result<()> {
        let tensors: HashSet<_> = self.tensor_names().iter().map(String::as_str).collect();
        self.clear(|name| tensors.contains(name))?;
        self.marker()?.go_on()?;
        // A run may have been killed when it had given files their headers.
        for number in 0..self.tensors {
            let mut start = *NO_HEADER;
            if self.reaches(number, start.len() as u64) {
                self.read(&mut start, number, 0)?;
            }
            if start != *NO_HEADER {
                self.write(NO_HEADER, number, 0)?;
            }
        }
        Ok(())
    }

    /// Adds a record to its journal.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn note(&self, record: &Record) -> Result<()> {
        self.marker()?.note(record)
    }

    /// Whether file number `file` is there and reaches to byte `end`.
    pub fn reaches(&self, file: usize, end: u64) -> bool {
        self.files.reaches(file, end)
    }

    /// Removes it, to be called where this run cannot do so itself.
    ///
    /// # Errors
    /// `E_WRITE` where the system does not give a second handle.
    pub fn remover(&self) -> Result<Box<dyn FnOnce() + Send>> {
        let (path, ours) = (self.path.clone(), Arc::clone(&self.ours));
        let empty = move || clear(&path, &ours, |_| false).is_ok();
        let (unmark, path) = (self.marker()?.remover(empty)?, self.path.clone());
        Ok(Box::new(move || {
            unmark();
            let _ = fs::remove_dir(path);
        }))
    }

    /// Refuses where the disk would not hold `needed` bytes.
    ///
    /// # Errors
    /// `E_NO_SPACE`.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        // What an interrupted run has written is there already.
        let allocated = |name: &String| File::open(self.path.join(name))?.allocated_size();
        let there: u64 = self.tensor_names().iter().flat_map(allocated).sum();
        check_space(&self.target, needed.saturating_sub(there))
    }

    /// Gives each file its header and its length.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn finish(&self, headers: &[FileHeader]) -> Result<()> {
        // Without a header no reader takes a file for a whole one: it comes when everything else has come.
        self.sync()?;
        for file in headers {
            let (number, _) = place(file.start);
            self.write(&file.header, number, 0)?;
            let cut = self.file(number).and_then(|open| cut(&open, file.bytes));
            cut.map_err(|error| Error::write(&self.files.path(number), &error))?;
            self.files.finished(number, file.bytes);
        }
        Ok(())
    }

    /// Writes `bytes` at an offset of file number `file`.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn write(&self, bytes: &[u8], file: usize, offset: u64) -> Result<()> {
        let open = self.file(file);
        let written = open.and_then(|open| system::write_all_at(&open, bytes, offset));
        written.map_err(|error| Error::write(&self.files.path(file), &error))
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn read(&self, buffer: &mut [u8], file: usize, offset: u64) -> Result<()> {
        let open = self.file(file);
        let read = open.and_then(|open| system::read_exact_at(&open, buffer, offset));
        read.map_err(|error| Error::read(&self.files.path(file), &error))
    }

    /// Writes a whole small file.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let unknown = || Error::new(Code::Internal, "the folder has no file of this name");
        let number = self.files.number(name).ok_or_else(unknown)?;
        let add = || {
            let file = self.file(number)?;
            system::write_all_at(&file, bytes, 0)?;
            file.sync_all()
        };
        add().map_err(|error| Error::write(&self.files.path(number), &error))?;
        self.files.finished(number, bytes.len() as u64);
        Ok(())
    }

    /// Flushes everything to the disk: the data before what the journal says of it.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        // Not under the lock: a flush takes long, and others want to write.
        self.files
            .all_open()
            .iter()
            .try_for_each(|(number, file)| {
                let synced = file.sync_all();
                synced.map_err(|error| Error::write(&self.files.path(*number), &error))
            })?;
        self.marker()?.sync_journal()
    }

    /// Flushes everything and gives the folder its name. An existing folder of DF11 files is replaced where `replace` says so; what it held besides is
    /// kept, under the name that is told.
    ///
    /// # Errors
    /// `E_TARGET_EXISTS` where the target appeared meanwhile or is none of ours; `E_WRITE`, `E_NO_SPACE`.
    pub fn commit(&mut self, replace: bool, progress: &Progress) -> Result<Option<PathBuf>> {
        self.sync()?;
        self.files.close();
        self.files.check()?;
        system::sync_folder(&self.path);
        progress.pass_the_last_moment()?;
        if !self.marker()?.is_in_place() {
            return Err(taken_away(&self.path));
        }
        let aside = replace.then(|| self.move_aside()).transpose()?.flatten();
        if !system::RENAMES_OPEN_FOLDERS
            && let Some(lock) = self.lock.take()
        {
            lock.leave();
        }
        // A folder without files is nothing that could be lost.
        let _ = fs::remove_dir(&self.target);
        if let Err(error) = fs::rename(&self.path, &self.target) {
            let mut error = if self.target.exists() {
                target_exists(&self.target)
            } else {
                Error::write(&self.target, &error).during("giving the folder its name")
            };
            if let Some(aside) = aside
                && fs::rename(&aside, &self.target).is_err()
            {
                let aside = aside.display();
                error.hint = format!("{} What stood there is in {aside}.", error.hint);
            }
            return Err(error);
        }
        system::sync_folder(&folder_of(&self.target));
        // It is complete from here on. Where these stay, the next run removes them.
        for path in MARKS.map(|name| self.target.join(name)) {
            let _ = fs::remove_file(path);
        }
        self.lock = None;
        Ok(aside.filter(|aside| !self.discard(aside)))
    }

    /// Moves an existing target out of the way.
    fn move_aside(&self) -> Result<Option<PathBuf>> {
        if !is_taken(&self.target) {
            return Ok(None);
        }
        if !is_df11_folder(&self.target) {
            return Err(target_exists(&self.target));
        }
        let name = self
            .target
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let mut names = (1_u32..).map(|number| format!("{name}.replaced-{number}"));
        let free = names.find_map(|name| {
            let path = self.target.with_file_name(name);
            fs::symlink_metadata(&path).is_err().then_some(path)
        });
        let aside = free.unwrap_or_default();
        fs::rename(&self.target, &aside).map_err(|error| Error::write(&self.target, &error))?;
        Ok(Some(aside))
    }

    /// Removes from a replaced folder what the new one has too, and the folder where nothing else is in it: whether it is gone.
    fn discard(&self, aside: &Path) -> bool {
        // The folder that a link leads to is as it was.
        if aside.is_symlink() {
            return fs::remove_file(aside).is_ok();
        }
        let Ok(new) = fs::read_dir(&self.target) else {
            return false;
        };
        for name in new.flatten().map(|entry| entry.file_name()) {
            let _ = fs::remove_file(aside.join(name));
        }
        fs::remove_dir(aside).is_ok()
    }

    /// Ends a failed run: after a failure that may pass, what is finished is kept, and the error says so.
    pub fn give_up(mut self, error: Error) -> Error {
        let keeps = |lock: &mut PartialFile| lock.keep(error.code);
        if !self.lock.as_mut().is_some_and(keeps) {
            return error;
        }
        self.lock = None;
        kept_in(&self.path, error)
    }

    fn tensor_names(&self) -> &[String] {
        &self.files.names()[..self.tensors]
    }

    fn marker(&self) -> Result<&PartialFile> {
        let ended = || Error::new(Code::Internal, "the folder was left already");
        self.lock.as_ref().ok_or_else(ended)
    }

    fn clear(&self, is_kept: impl Fn(&str) -> bool) -> Result<()> {
        self.files.close();
        let cleared = clear(&self.path, &self.ours, is_kept);
        cleared.map_err(|error| Error::write(&self.path, &error))
    }

    fn file(&self, number: usize) -> io::Result<Arc<File>> {
        let is_ours = || self.marker().is_ok_and(PartialFile::is_in_place);
        self.files.file(number, is_ours)
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else {
            return;
        };
        self.files.close();
        // The marker is the last to go: what is left without it would be nobody's.
        if lock.is_in_place() && clear(&self.path, &self.ours, |_| false).is_err() {
            return lock.leave();
        }
        drop(lock);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Gives a file its length. All of it was written, and more may be left of an interrupted run.
fn cut(file: &File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() < bytes {
        return Err(io::Error::other("another program has cut it"));
    }
    file.set_len(bytes)
}

/// Removes those files of a folder that are ours, but for the ones that are kept.
fn clear(folder: &Path, ours: &HashSet<String>, is_kept: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if ours.contains(&*name) && !is_kept(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a folder is one that a run left: it holds the marker, or nothing but what a run removes last.
fn is_marked(folder: &Path) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name == MARKS[0] {
            return Ok(true);
        }
        is_empty &= name == MARKS[1];
    }
    Ok(is_empty)
}

/// Refuses a folder that holds anything but our files, each of one name; but what is hidden is nobody's business.
fn check_ours(folder: &Path, ours: &HashSet<String>) -> Result<()> {
    let failed = |error| Error::write(folder, &error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        if !ours.contains(&*name) || !system::is_file_of_one_name(&found) {
            return Err(foreign(&path));
        }
    }
    Ok(())
}
