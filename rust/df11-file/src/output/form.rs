//! What is being written, one file or a folder of files, as one space of addresses: who writes or reads at an offset need not know in which file.

use std::path::{Path, PathBuf};

use super::{PartialFile, Region, folder::PartialFolder};
use crate::{
    error::{Code, Error, Result},
    journal::Record,
    progress::Progress,
};

/// Addresses of one file of a folder: more bytes than any has.
pub const FILE_SPAN: u64 = 1 << 44;

/// The names of a folder's files.
#[derive(Debug)]
pub struct FileNames {
    /// Those of tensors, in the order of their addresses.
    pub tensors: Vec<String>,
    /// The others.
    pub others: Vec<String>,
}

/// The header of a finished file.
#[derive(Debug)]
pub struct FileHeader {
    /// The address of the file's first byte.
    pub start: u64,
    /// The header, which is what the file begins with.
    pub header: Vec<u8>,
    /// Bytes of the whole file.
    pub bytes: u64,
}

/// A result being written. Dropped before [`Self::commit`], it is removed.
#[derive(Debug)]
pub enum Output {
    /// One file; addresses are its offsets.
    File(PartialFile),
    /// A folder; file number n begins at address n * [`FILE_SPAN`].
    Folder(Box<PartialFolder>),
}

impl Output {
    /// Takes the partial form of `target`: a folder for files of these names, or a file where there are none. Where an interrupted run has left one, its
    /// records are told: it is to be restarted or gone on with.
    ///
    /// # Errors
    /// `E_PARTIAL_FOREIGN`, `E_TARGET_BUSY`; `E_WRITE`, `E_NO_SPACE`.
    pub fn open(target: &Path, files: Option<FileNames>) -> Result<(Self, Option<Vec<Record>>)> {
        let Some(names) = files else {
            let (file, left) = PartialFile::open(target)?;
            return Ok((Self::File(file), left));
        };
        let (folder, left) = PartialFolder::open(target, names)?;
        Ok((Self::Folder(Box::new(folder)), left))
    }

    /// The same without what an interrupted run has left, which the flag tells.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn create(target: &Path, files: Option<FileNames>) -> Result<(Self, bool)> {
        let (output, left) = Self::open(target, files)?;
        output.restart()?;
        Ok((output, left.is_some()))
    }

    /// Removes what a run has left that was killed after its result had got its name.
    pub fn tidy(target: &Path) {
        PartialFile::tidy(target);
        PartialFolder::tidy(target);
    }

    /// Empties it and its journal.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn restart(&self) -> Result<()> {
        match self {
            Self::File(file) => file.restart(),
            Self::Folder(folder) => folder.restart(),
        }
    }

    /// Goes on with what an interrupted run has left.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn go_on(&self) -> Result<()> {
        match self {
            Self::File(file) => file.go_on(),
            Self::Folder(folder) => folder.go_on(),
        }
    }

    /// Removes it, to be called where this run cannot do so itself.
    ///
    /// # Errors
    /// `E_WRITE` where the system does not give a second handle.
    pub fn remover(&self) -> Result<Box<dyn FnOnce() + Send>> {
        match self {
            Self::File(file) => Ok(Box::new(file.remover(|| true)?)),
            Self::Folder(folder) => folder.remover(),
        }
    }

    /// Adds a record to its journal.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn note(&self, record: &Record) -> Result<()> {
        match self {
            Self::File(file) => file.note(record),
            Self::Folder(folder) => folder.note(record),
        }
    }

    /// Whether what is written reaches to the end of a region.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn holds(&self, region: &Region) -> Result<bool> {
        let Some(end) = region.offset.checked_add(region.bytes) else {
            return Ok(false);
        };
        match self {
            Self::File(file) => Ok(end <= file.bytes()?),
            Self::Folder(folder) => {
                let (file, offset) = place(region.offset);
                Ok(folder.reaches(file, offset + region.bytes))
            }
        }
    }

    /// Refuses where the disk would not hold `needed` bytes. To be asked before the first write, and when an old partial form has gone.
    ///
    /// # Errors
    /// `E_NO_SPACE`.
    pub fn check_space(&self, needed: u64) -> Result<()> {
        match self {
            Self::File(file) => file.check_space(needed),
            Self::Folder(folder) => folder.check_space(needed),
        }
    }

    /// Writes the headers of all files.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn finish(&self, headers: &[FileHeader]) -> Result<()> {
        match self {
            Self::File(file) => {
                let mut headers = headers.iter();
                headers.try_for_each(|one| file.finish(&one.header, one.bytes))
            }
            Self::Folder(folder) => folder.finish(headers),
        }
    }

    /// Ends a failed run: what is finished is kept after a failure that may pass, and the error says so.
    pub fn give_up(self, error: Error) -> Error {
        match self {
            Self::File(file) => file.give_up(error),
            Self::Folder(folder) => (*folder).give_up(error),
        }
    }

    /// Writes a whole small file into a folder.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`; `E_INTERNAL` where this is a file.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        match self {
            Self::File(_) => Err(Error::new(Code::Internal, "a file holds no other")),
            Self::Folder(folder) => folder.add(name, bytes),
        }
    }

    /// Writes `bytes` at an address.
    ///
    /// # Errors
    /// `E_NO_SPACE`, `E_WRITE`.
    pub fn write(&self, bytes: &[u8], address: u64) -> Result<()> {
        match self {
            Self::File(file) => file.write(bytes, address),
            Self::Folder(folder) => {
                let (file, offset) = place(address);
                folder.write(bytes, file, offset)
            }
        }
    }

    /// Reads back what was written.
    ///
    /// # Errors
    /// `E_READ`.
    pub fn read(&self, buffer: &mut [u8], address: u64) -> Result<()> {
        match self {
            Self::File(file) => file.read(buffer, address),
            Self::Folder(folder) => {
                let (file, offset) = place(address);
                folder.read(buffer, file, offset)
            }
        }
    }

    /// Flushes everything to the disk.
    ///
    /// # Errors
    /// `E_WRITE`, `E_NO_SPACE`.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::File(file) => file.sync(),
            Self::Folder(folder) => folder.sync(),
        }
    }

    /// Flushes everything and gives the result its name. An existing target survives unless `replace`; what a replaced folder held besides the result's
    /// files is kept, under the path that is given back.
    ///
    /// # Errors
    /// `E_TARGET_EXISTS` where the target appeared meanwhile, `E_WRITE`, `E_NO_SPACE`; `E_CANCELLED`.
    pub fn commit(&mut self, replace: bool, progress: &Progress) -> Result<Option<PathBuf>> {
        match self {
            Self::File(file) => file.commit(replace, progress).map(|()| None),
            Self::Folder(folder) => folder.commit(replace, progress),
        }
    }
}

/// What is told where a run has begun anew in place of what an interrupted one has left.
pub fn left_was_replaced(is_folder: bool) -> String {
    let what = if is_folder { "folder" } else { "file" };
    format!("a partial {what} left by an interrupted run was replaced")
}

/// What is told of files that a replaced folder held besides the result's.
pub fn kept_aside(folder: &Path) -> String {
    let kept = folder.display();
    format!("the replaced folder held other files too; they are in {kept}")
}

/// The number of the file at an address, and the offset in it.
pub fn place(address: u64) -> (usize, u64) {
    ((address / FILE_SPAN) as usize, address % FILE_SPAN)
}
