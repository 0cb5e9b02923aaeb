//! The partial folder: beside the target, marked as ours, locked, and renamed only when complete.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    PartialFile,
    partial::{check_space, path_of},
};
use crate::{
    error::{Code, Error, Result},
    journal::foreign,
    plan::{folder_of, is_df11_folder, is_taken, target_exists},
    progress::Progress,
    sync::lock,
    system,
};

/// In it, the marked and locked file has this name, which no other file can have, and the ending of partial files.
const LOCK: &str = ".df11";
/// Files that are open at a time; systems allow a process 256 or more.
const MAX_OPEN: usize = 64;

/// A folder being written. Dropped before [`Self::commit`], it is removed.
#[derive(Debug)]
pub struct PartialFolder {
    path: PathBuf,
    target: PathBuf,
    lock: Option<PartialFile>,
    names: Vec<String>,
    open: Mutex<VecDeque<(usize, Arc<File>)>>,
}

impl PartialFolder {
    /// Creates the partial folder of `target` for files of these names. The flag says whether one left by an interrupted run was replaced.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN` where something without our marker stands there, `E_TARGET_BUSY` where another run holds it.
    pub fn create(target: &Path, names: Vec<String>) -> Result<(Self, bool)> {
        let path = path_of(target);
        let failed = |error| Error::write(&path, &error);
        let is_left = match fs::create_dir(&path) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let kind = fs::symlink_metadata(&path).map_err(failed)?.file_type();
                if !kind.is_dir() || !is_ours(&path).map_err(failed)? {
                    return Err(foreign(&path));
                }
                true
            }
            Err(error) => return Err(failed(error)),
        };
        let (lock, _) = PartialFile::create(&path.join(LOCK)).map_err(|mut error| {
            // Where anything is in it, it stays.
            let _ = fs::remove_dir(&path);
            if error.code == Code::TargetBusy {
                error.path = Some(target.to_path_buf());
            }
            error
        })?;
        let folder = Self {
            path,
            target: target.to_path_buf(),
            lock: Some(lock),
            names,
            open: Mutex::new(VecDeque::new()),
        };
        if is_left {
            clear(&folder.path).map_err(|error| Error::write(&folder.path, &error))?;
        }
        Ok((folder, is_left))
    }

    /// Removes it, to be called where this run cannot do so itself.
    ///
    /// # Errors
    /// `E_WRITE` where the system does not give a second handle.
    pub fn remover(&self) -> Result<Box<dyn FnOnce() + Send>> {
        let unlock = self.lock.as_ref().map(PartialFile::remover).transpose()?;
        let path = self.path.clone();
        Ok(Box::new(move || {
            let _ = clear(&path);
            if let Some(unlock) = unlock {
                unlock();
            }
            let _ = fs::remove_dir(path);
        }))
    }

    /// Refuses where the disk would not hold `needed` bytes.
    ///
    /// # Errors
    /// `E_NO_SPACE`.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        check_space(&self.target, needed)
    }

    /// Writes `bytes` at an offset of file number `file`.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn write(&self, bytes: &[u8], file: usize, offset: u64) -> Result<()> {
        let path = self.file_path(file);
        let failed = |error| Error::write(&path, &error);
        let open = self.file(file, &path).map_err(failed)?;
        system::write_all_at(&open, bytes, offset).map_err(failed)
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn read(&self, buffer: &mut [u8], file: usize, offset: u64) -> Result<()> {
        let path = self.file_path(file);
        let failed = |error| Error::read(&path, &error);
        let open = self.file(file, &path).map_err(failed)?;
        system::read_exact_at(&open, buffer, offset).map_err(failed)
    }

    /// Writes a whole small file.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let add = || {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            system::write_all_at(&file, bytes, 0)?;
            file.sync_all()
        };
        add().map_err(|error| Error::write(&path, &error))
    }

    /// Flushes everything to the disk.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        // Not under the lock: a flush takes long, and others want to write.
        let open: Vec<_> = self.handles().iter().cloned().collect();
        open.iter().try_for_each(|(number, file)| {
            let synced = file.sync_all();
            synced.map_err(|error| Error::write(&self.file_path(*number), &error))
        })
    }

    /// Flushes everything and gives the folder its name. An existing folder of DF11 files is replaced where `replace` says so; what it held besides is
    /// kept, under the name that is told.
    ///
    /// # Errors
    /// `E_TARGET_EXISTS` where the target appeared meanwhile or is none of ours; `E_WRITE`, `E_NO_SPACE`.
    pub fn commit(&mut self, replace: bool, progress: &Progress) -> Result<Option<PathBuf>> {
        self.sync()?;
        self.handles().clear();
        system::sync_folder(&self.path);
        progress.pass_the_last_moment()?;
        let aside = replace.then(|| self.move_aside()).transpose()?.flatten();
        // The marker and its journal are no part of the result, and some systems rename no folder that holds an open file.
        self.lock = None;
        // A folder without files is nothing that could be lost.
        let _ = fs::remove_dir(&self.target);
        if let Err(error) = fs::rename(&self.path, &self.target) {
            if let Some(aside) = &aside {
                let _ = fs::rename(aside, &self.target);
            }
            self.remove();
            return Err(if self.target.exists() {
                target_exists(&self.target)
            } else {
                Error::write(&self.target, &error).during("giving the folder its name")
            });
        }
        system::sync_folder(&folder_of(&self.target));
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
        let Ok(new) = fs::read_dir(&self.target) else {
            return false;
        };
        for name in new.flatten().map(|entry| entry.file_name()) {
            let _ = fs::remove_file(aside.join(name));
        }
        fs::remove_dir(aside).is_ok()
    }

    /// Removes the files, and the folder where nothing else is in it.
    fn remove(&mut self) {
        self.handles().clear();
        let _ = clear(&self.path);
        self.lock = None;
        let _ = fs::remove_dir(&self.path);
    }

    fn file_path(&self, file: usize) -> PathBuf {
        self.path.join(&self.names[file])
    }

    fn file(&self, number: usize, path: &Path) -> io::Result<Arc<File>> {
        let mut open = self.handles();
        if let Some((_, file)) = open.iter().rev().find(|(known, _)| *known == number) {
            return Ok(Arc::clone(file));
        }
        while open.len() >= MAX_OPEN
            && let Some((_, oldest)) = open.pop_front()
        {
            // The system tells of a failed write only whoever has the file open.
            oldest.sync_all()?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Arc::new(options.open(path)?);
        open.push_back((number, Arc::clone(&file)));
        Ok(file)
    }

    fn handles(&self) -> MutexGuard<'_, VecDeque<(usize, Arc<File>)>> {
        lock(&self.open)
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // Without the lock the folder has its name, or is another run's.
        if self.lock.is_some() {
            self.remove();
        }
    }
}

/// Removes all files of a folder but the locked one and its journal.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(&format!("{LOCK}.")) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a folder is one that an interrupted run left: it holds a marked file, or nothing; and files only.
fn is_ours(folder: &Path) -> io::Result<bool> {
    let (mut is_marked, mut entries) = (false, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            return Ok(false);
        }
        entries += 1;
        is_marked |= entry.file_name().to_string_lossy() == format!("{LOCK}.partial");
    }
    Ok(is_marked || entries == 0)
}
