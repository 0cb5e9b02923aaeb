//! The source checkpoint: one file, or several that an index or a folder holds together. Its data is that of all files, one behind the other.

mod config;
mod file;
mod folder;
mod index;
mod start;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    error::{Code, Error, Result},
    hash::{Xxh3, xxh3_64},
    header::{self, Header, MAX_HEADER_BYTES, ShardText},
    system::reserve,
};
pub use config::{Config, NAME as CONFIG_NAME};
use file::SafetensorsFile;

/// What tells one state of a source from another.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SourceIdentity {
    /// Size in bytes, of all files.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970; of several files, xxh3 of all their times.
    pub modified_ns: u64,
    /// xxh3 of the text that [`Source::header_json`] gives, as 16 hexadecimal digits.
    pub header_xxh3: String,
}

/// An open checkpoint.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    files: Vec<SafetensorsFile>,
    /// Where each file's data ends, in the data of all.
    ends: Vec<u64>,
    header: Header,
    header_json: Vec<u8>,
    identity: SourceIdentity,
    folder: Option<SourceFolder>,
}

/// What a source has that is more than a file.
#[derive(Clone, Debug)]
pub struct SourceFolder {
    /// The folder.
    pub path: PathBuf,
    /// Name and text of the index, where there is one.
    pub index: Option<(String, Arc<str>)>,
    /// Its `config.json`, where there is one.
    pub config: Option<Config>,
}

impl Source {
    /// Opens `path`, a file, an index or a folder, and reads its headers.
    ///
    /// # Errors
    /// What it is instead of a sound checkpoint, or why it cannot be read; where it has several files, the faults of all.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, MAX_HEADER_BYTES)
    }

    /// The same for a job whose memory holds headers of at most so many bytes.
    ///
    /// # Errors
    /// Those of [`Self::open`]; `E_NO_MEMORY` where the headers are longer.
    pub fn open_within(path: &Path, longest_header: u64) -> Result<Self> {
        reserve::fill()?;
        if path.is_dir() || index::is_name(path) {
            return folder::open(path, longest_header).map_err(|error| error.all_at_path(path));
        }
        let (file, header, text) = SafetensorsFile::open(path, longest_header)?;
        Ok(Self::new(path, vec![file], (header, text), None))
    }

    fn new(
        path: &Path,
        files: Vec<SafetensorsFile>,
        (header, header_json): (Header, Vec<u8>),
        folder: Option<SourceFolder>,
    ) -> Self {
        let modified_ns = match &files[..] {
            [one] => one.modified_ns,
            several => {
                let mut hasher = Xxh3::new();
                for file in several {
                    hasher.update(&file.modified_ns.to_le_bytes());
                }
                hasher.digest()
            }
        };
        let identity = SourceIdentity {
            bytes: files.iter().map(|file| file.bytes).sum(),
            modified_ns,
            header_xxh3: format!("{:016x}", xxh3_64(&header_json)),
        };
        let mut end = 0;
        let ends = files.iter().map(|file| {
            end += file.data_bytes;
            end
        });
        Self {
            path: path.to_path_buf(),
            ends: ends.collect(),
            files,
            header,
            header_json,
            identity,
            folder,
        }
    }

    /// Several open files, with headers and texts, as one source.
    fn of_files(
        path: &Path,
        opened: Vec<(SafetensorsFile, Header, Vec<u8>)>,
        folder: SourceFolder,
    ) -> Result<Self> {
        let (mut files, mut headers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (file, header, text) in opened {
            texts.push(ShardText {
                name: file.name(),
                data_bytes: file.data_bytes,
                // A header that was read is text.
                header: String::from_utf8(text).unwrap_or_default(),
            });
            headers.push(header);
            files.push(file);
        }
        let names = texts.iter().map(|text| text.name.as_str());
        let header = header::merge(names.zip(headers).collect())?;
        let text = header::shards_text(&texts);
        Ok(Self::new(path, files, (header, text), Some(folder)))
    }

    /// Its path, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the file, or of the folder that it lies in.
    pub fn name(&self) -> String {
        let folder = self.folder.as_ref().map(|folder| &folder.path);
        // A folder may be named by dots.
        let named = folder.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        let named = named.as_deref().unwrap_or(&self.path).file_name();
        named.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder that it was opened as; none for a file.
    pub fn folder(&self) -> Option<&SourceFolder> {
        self.folder.as_ref()
    }

    /// Its `config.json`, where it was opened as a folder that has one.
    pub fn config(&self) -> Option<&Config> {
        self.folder.as_ref()?.config.as_ref()
    }

    /// Its files.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(SafetensorsFile::path)
    }

    /// Its header; that of all files, with offsets in the data of all.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The header's JSON text, as it stands in the file; of a folder, a JSON list of its files' names, sizes and headers.
    pub fn header_json(&self) -> &[u8] {
        &self.header_json
    }

    /// Its identity when it was opened.
    pub fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    /// Reads data bytes; `offset` counts from the start of the data.
    ///
    /// # Errors
    /// `E_SOURCE_CHANGED` where a file has become shorter, `E_READ` otherwise.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let (mut rest, mut offset) = (buffer, offset);
        let mut number = self.ends.partition_point(|&end| end <= offset);
        // Behind the last file's data it is that file which ends early.
        while !rest.is_empty() {
            let last = number.min(self.files.len() - 1);
            let start = last.checked_sub(1).map_or(0, |before| self.ends[before]);
            let here = match self.ends.get(number) {
                Some(end) => rest.len().min((end - offset) as usize),
                None => rest.len(),
            };
            let (part, more) = rest.split_at_mut(here);
            self.files[last].read(part, offset - start)?;
            (rest, offset, number) = (more, offset + here as u64, number + 1);
        }
        Ok(())
    }

    /// Checks that no file has been written to since it was opened.
    ///
    /// # Errors
    /// `E_SOURCE_CHANGED` where one has.
    pub fn check_unchanged(&self) -> Result<()> {
        let mut files = self.files.iter();
        files.try_for_each(SafetensorsFile::check_unchanged)
    }
}

/// The refusal of files that do not belong together.
fn index_fault(message: impl Into<String>) -> Error {
    Error::new(Code::Index, message).hint("Download the model again, or write it again.")
}
