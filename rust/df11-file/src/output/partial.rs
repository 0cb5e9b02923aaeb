//! The partial file: beside the target, marked as ours, locked, and renamed only when complete.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use fs4::FileExt;

use crate::{
    error::{Code, Error, Result},
    plan::{folder_of, target_exists},
    system,
};

/// First bytes of every partial file of ours. As a safetensors header length they are absurd, so no loader takes the file for a model.
pub const MARKER: &[u8; 16] = b"DF11-PARTIAL/1\r\n";

/// A file being written. Dropped before [`Self::commit`], it is removed.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl PartialFile {
    /// Creates the partial file of `target`. The flag says whether one left by an interrupted run was replaced.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN` where a file without our marker stands there, `E_TARGET_BUSY` where another run holds it.
    pub fn create(target: &Path) -> Result<(Self, bool)> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let path = target.with_file_name(name);
        let failed = |error| Error::write(&path, &error);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, left) = match options.clone().create_new(true).open(&path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A link leads to a file that has another name: not one of ours, whatever it holds.
                let found = fs::symlink_metadata(&path).map_err(failed)?;
                if !found.is_file() || system::has_other_names(&found) {
                    return Err(foreign(&path));
                }
                (options.open(&path).map_err(failed)?, true)
            }
            Err(error) => return Err(failed(error)),
        };
        // A new file needs no lock to be ours, and some file systems have none. Whoever has locked a file that was created just now will
        // find no marker in it and let go.
        let locked = if left {
            FileExt::try_lock(&file)
        } else {
            FileExt::lock(&file).map_err(fs4::TryLockError::Error)
        };
        // The run that held the lock may have taken the file away, or given it the target's name.
        let is_here = is_at(&file, &path);
        if left && matches!(locked, Err(fs4::TryLockError::Error(_))) {
            let message =
                "a run has left this file, or is still writing it; this file system cannot tell";
            return Err(Error::new(Code::TargetBusy, message)
                .hint("If no other run is active, delete it.")
                .at_path(&path));
        }
        if matches!(locked, Err(fs4::TryLockError::WouldBlock)) || !is_here {
            let message = "another run is writing this file";
            return Err(Error::new(Code::TargetBusy, message)
                .hint("Wait for it or stop it.")
                .at_path(target));
        }
        if left {
            let mut start = [0; MARKER.len()];
            if system::read_exact_at(&file, &mut start, 0).is_err() || start != *MARKER {
                return Err(foreign(&path));
            }
        }
        let partial = Self {
            file,
            path,
            target: target.to_path_buf(),
            committed: false,
        };
        partial.write(MARKER, 0)?;
        partial
            .file
            .set_len(MARKER.len() as u64)
            .map_err(|error| partial.failed(&error))?;
        Ok((partial, left))
    }

    /// Refuses where the disk would not hold `needed` bytes. To be asked before the first write, and when an old partial file has gone.
    ///
    /// # Errors
    /// `E_NO_SPACE`.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        match system::free_space(&folder_of(&self.target)) {
            Some(free) if free < needed => {
                let message = format!(
                    "the result needs about {} MB, the disk has {} MB left",
                    needed / 1_000_000,
                    free / 1_000_000
                );
                Err(Error::new(Code::NoSpace, message)
                    .hint("Free some space or choose another folder.")
                    .at_path(&self.target))
            }
            _ => Ok(()),
        }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
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

    /// Flushes everything to the disk.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| self.failed(&error))
    }

    /// Flushes everything and gives the file its name. An existing target survives unless `replace`.
    ///
    /// # Errors
    /// `E_TARGET_EXISTS` where the target appeared meanwhile, `E_WRITE`, `E_NO_SPACE`.
    pub fn commit(mut self, replace: bool) -> Result<()> {
        self.sync()?;
        self.publish(replace)?;
        self.committed = true;
        system::sync_folder(&folder_of(&self.target));
        Ok(())
    }

    fn publish(&self, replace: bool) -> Result<()> {
        if !is_at(&self.file, &self.path) {
            let message = "another program took the file away while it was being written";
            return Err(Error::new(Code::Write, message)
                .hint("Start again, or choose another name.")
                .at_path(&self.path));
        }
        if !replace {
            // A hard link, unlike a rename, never overwrites.
            match fs::hard_link(&self.path, &self.target) {
                Ok(()) => return fs::remove_file(&self.path).map_err(|error| self.failed(&error)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(target_exists(&self.target));
                }
                // Some file systems have no hard links.
                Err(_) if self.target.exists() => return Err(target_exists(&self.target)),
                Err(_) => {}
            }
        }
        fs::rename(&self.path, &self.target).map_err(|error| Error::write(&self.target, &error))
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::write(&self.path, error)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.committed && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `file` is what stands at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let same = || {
        let here = same_file::Handle::from_path(path)?;
        Ok::<_, io::Error>(here == same_file::Handle::from_file(file.try_clone()?)?)
    };
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) && same().unwrap_or(false)
}

fn foreign(path: &Path) -> Error {
    let message = "this file is in the way, and it is not one that DFloat11 Compress left";
    Error::new(Code::PartialForeign, message)
        .hint("Rename or delete it.")
        .at_path(path)
}
