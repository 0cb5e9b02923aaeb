//! One safetensors file: opened once, read by positioned reads, never mapped, never written.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::start::check_start;
use crate::{
    error::{Code, Error, Result},
    header::{self, Header},
    system,
};

/// An open safetensors file.
#[derive(Debug)]
pub struct SafetensorsFile {
    file: File,
    path: PathBuf,
    /// Where the data begins.
    data_start: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Of these, the data's.
    pub data_bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: u64,
}

impl SafetensorsFile {
    /// Opens `path` and reads its header of at most `longest_header` bytes: the file, its header, and that header's text.
    ///
    /// # Errors
    /// What the file is instead of a sound safetensors file, or why it cannot be read; `E_NO_MEMORY` where the header is longer.
    pub fn open(path: &Path, longest_header: u64) -> Result<(Self, Header, Vec<u8>)> {
        Self::open_file(path, longest_header).map_err(|error| error.at_path(path))
    }

    fn open_file(path: &Path, longest_header: u64) -> Result<(Self, Header, Vec<u8>)> {
        let failed = |error| Error::read(path, &error);
        // Asked before it is opened: opening a pipe would wait for a writer.
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() {
                "this is a folder"
            } else {
                "this is not a regular file"
            };
            return Err(Error::new(Code::NotSafetensors, what).hint("Choose a .safetensors file."));
        }
        let mut file = File::open(path).map_err(failed)?;
        let stat = file.metadata().map_err(failed)?;
        let bytes = stat.len();
        let mut head = Vec::new();
        (&mut file)
            .take(64)
            .read_to_end(&mut head)
            .map_err(failed)?;
        let length = check_start(&head, bytes)?;
        if length > longest_header {
            let message = format!(
                "its header of {length} bytes is too long for the memory budget, which holds one of {longest_header}"
            );
            return Err(Error::new(Code::NoMemory, message).hint("Raise the budget."));
        }
        let mut header_json = vec![0; length as usize];
        system::read_exact_at(&file, &mut header_json, 8).map_err(failed)?;
        let header = header::parse(&header_json, bytes.saturating_sub(8 + length))?;
        let opened = Self {
            file,
            path: path.to_path_buf(),
            data_start: 8 + length,
            bytes,
            data_bytes: bytes - 8 - length,
            modified_ns: modified_ns(&stat),
        };
        Ok((opened, header, header_json))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name, as text.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Reads data bytes; `offset` counts from the start of the data.
    ///
    /// # Errors
    /// `E_SOURCE_CHANGED` where the file has become shorter, `E_READ` otherwise.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        system::read_exact_at(&self.file, buffer, self.data_start + offset).map_err(|error| {
            match error.kind() {
                io::ErrorKind::UnexpectedEof => self.changed(),
                _ => Error::read(&self.path, &error),
            }
        })
    }

    /// Checks that the file has not been written to since it was opened.
    ///
    /// # Errors
    /// `E_SOURCE_CHANGED` where it has.
    pub fn check_unchanged(&self) -> Result<()> {
        let stat = self
            .file
            .metadata()
            .map_err(|error| Error::read(&self.path, &error))?;
        if stat.len() == self.bytes && modified_ns(&stat) == self.modified_ns {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    fn changed(&self) -> Error {
        Error::new(
            Code::SourceChanged,
            "the file was changed while it was being read",
        )
        .hint("Wait until its download or copy has ended, then start again.")
        .at_path(&self.path)
    }
}

fn modified_ns(stat: &fs::Metadata) -> u64 {
    let modified = stat
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |since| since.as_nanos() as u64)
}
