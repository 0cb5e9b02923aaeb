//! The source checkpoint: opened once, read by positioned reads, never mapped, never written.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use xxhash_rust::xxh3::xxh3_64;

use crate::{
    error::{Code, Error, Result},
    header::{self, Header, MAX_HEADER_BYTES, TRUNCATED_HINT},
    output::MARKER,
    system,
};

/// What tells one state of a source file from another.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SourceIdentity {
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: u64,
    /// xxh3 of the header's JSON text, as 16 hexadecimal digits.
    pub header_xxh3: String,
}

/// An open safetensors file.
#[derive(Debug)]
pub struct Source {
    file: File,
    path: PathBuf,
    header: Header,
    header_json: Vec<u8>,
    identity: SourceIdentity,
}

impl Source {
    /// Opens `path` and reads its header.
    ///
    /// # Errors
    /// What the file is instead of a sound safetensors file, or why it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, MAX_HEADER_BYTES)
    }

    /// The same for a job whose memory holds a header of at most so many bytes.
    ///
    /// # Errors
    /// Those of [`Self::open`]; `E_NO_MEMORY` where the header is longer.
    pub fn open_within(path: &Path, longest_header: u64) -> Result<Self> {
        Self::open_file(path, longest_header).map_err(|error| error.at_path(path))
    }

    fn open_file(path: &Path, longest_header: u64) -> Result<Self> {
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
        let header_xxh3 = format!("{:016x}", xxh3_64(&header_json));
        let identity = SourceIdentity {
            bytes,
            modified_ns: modified_ns(&stat),
            header_xxh3,
        };
        Ok(Self {
            file,
            path: path.to_path_buf(),
            header,
            header_json,
            identity,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The header's JSON text, as it stands in the file.
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
    /// `E_SOURCE_CHANGED` where the file has become shorter, `E_READ` otherwise.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let start = 8 + self.header_json.len() as u64;
        system::read_exact_at(&self.file, buffer, start + offset).map_err(|error| {
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
        if stat.len() == self.identity.bytes && modified_ns(&stat) == self.identity.modified_ns {
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

/// The header length from the first bytes of a file, or what the file is instead.
fn check_start(start: &[u8], file_bytes: u64) -> Result<u64> {
    let not_safetensors =
        |what: &str, hint: &str| Err(Error::new(Code::NotSafetensors, what).hint(hint));
    let text = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if start.is_empty() {
        return not_safetensors(
            "the file is empty",
            "Its download did not start or failed; download it again.",
        );
    }
    if start.starts_with(b"GGUF") {
        return not_safetensors(
            "this is a GGUF file, whose weights are quantised",
            "Use the BF16 safetensors file of the model.",
        );
    }
    // A header length may begin with the same bytes, such as 640 with those of a pickle; then the header's brace follows.
    let is_pickle = [b"PK\x03\x04".as_slice(), b"\x80\x02", b"\x80\x04"]
        .iter()
        .any(|magic| start.starts_with(magic));
    if is_pickle && start.get(8) != Some(&b'{') {
        return not_safetensors(
            "this is a pickle file (.ckpt, .pt)",
            "Convert it to .safetensors first.",
        );
    }
    if text.starts_with("version https://git-lfs") {
        return not_safetensors(
            "this is a git LFS pointer, not the model itself",
            "Fetch the model with `git lfs pull` or download it.",
        );
    }
    if text.starts_with("<!doctype html") || text.starts_with("<html") {
        return not_safetensors(
            "this is a web page, not a model",
            "The download needs a login or another address; download it again.",
        );
    }
    if start.starts_with(MARKER) {
        return not_safetensors(
            "this is the unfinished file of a run that was interrupted, or is still going on",
            "Start that run again; it replaces the file.",
        );
    }
    let Some((length, _)) = start.split_first_chunk::<8>() else {
        return not_safetensors(
            "the file is too short for a safetensors file",
            "Download it again.",
        );
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        return not_safetensors(
            "this is not a safetensors file",
            "Choose a .safetensors file.",
        );
    }
    let available = file_bytes.saturating_sub(8);
    if available < length {
        let message =
            format!("the file is truncated: it has {available} of {length} bytes of its header");
        return Err(Error::new(Code::Truncated, message).hint(TRUNCATED_HINT));
    }
    Ok(length)
}
