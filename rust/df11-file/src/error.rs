//! Every refusal and failure: a stable code, one sentence, the place, and what to do.

use std::{fmt, io, path::Path, path::PathBuf};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)+) => {
        /// Stable `E_...` code of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)+ }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code as users see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The class of failure.
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)+ }
            }
        }
    };
}

/// Classes of failure; each has an exit code of the `df11` command and an exception of the Python module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request itself is wrong.
    Usage,
    /// The input is not compressed.
    Refused,
    /// Written bytes do not decode to the source.
    Mismatch,
    /// Not enough disk space or memory.
    Space,
    /// The target exists or is in use.
    TargetExists,
    /// Stopped on request.
    Cancelled,
    /// Reading or writing failed, or the GPU.
    Io,
    /// A fault of this program.
    Internal,
}

codes! {
    /// An option has a value that cannot be used.
    Option = "E_OPTION", Usage;
    /// The file is not a safetensors file.
    NotSafetensors = "E_NOT_SAFETENSORS", Refused;
    /// The safetensors header breaks a rule of the format.
    Header = "E_HEADER", Refused;
    /// The file ends before the data that its header describes.
    Truncated = "E_TRUNCATED", Refused;
    /// The file goes on behind the data that its header describes.
    TrailingBytes = "E_TRAILING_BYTES", Refused;
    /// The files of a model, or its index, do not fit together.
    Index = "E_INDEX", Refused;
    /// A model's configuration cannot be used.
    Config = "E_CONFIG", Refused;
    /// The file already is a DF11 file.
    AlreadyDf11 = "E_ALREADY_DF11", Refused;
    /// The file is not a DF11 file.
    NotDf11 = "E_NOT_DF11", Refused;
    /// The tensors of a DF11 file do not fit together.
    Structure = "E_STRUCTURE", Mismatch;
    /// A DF11 file does not hold all that its source was.
    NotRestorable = "E_NOT_RESTORABLE", Refused;
    /// The file holds quantised weights.
    Quantized = "E_QUANTIZED", Refused;
    /// No architecture matches the tensor names.
    ArchUnknown = "E_ARCH_UNKNOWN", Refused;
    /// More than one architecture matches.
    ArchAmbiguous = "E_ARCH_AMBIGUOUS", Refused;
    /// The chosen architecture is not the one that the tensor names show.
    ArchContradiction = "E_ARCH_CONTRADICTION", Refused;
    /// The architecture is known, but no loader could use the result.
    ArchRefused = "E_ARCH_REFUSED", Refused;
    /// An architecture file is faulty.
    Definition = "E_DEFINITION", Usage;
    /// A unit lacks one of its weights.
    UnitIncomplete = "E_UNIT_INCOMPLETE", Refused;
    /// No tensor belongs to a compression unit.
    NoUnits = "E_NO_UNITS", Refused;
    /// Two tensors would get the same name.
    NameCollision = "E_NAME_COLLISION", Refused;
    /// A tensor is not the one that the model takes it from.
    Tied = "E_TIED", Refused;
    /// A unit's name cannot be that of its file.
    FileName = "E_FILE_NAME", Refused;
    /// A unit's weights are not BF16.
    Dtype = "E_DTYPE", Refused;
    /// A unit holds an exponent that DF11 has no room for.
    Exponent = "E_EXPONENT", Refused;
    /// As DF11 the file would not be smaller.
    NoGain = "E_NO_GAIN", Refused;
    /// A unit has no weights, or more than the decode kernel can index.
    UnitSize = "E_UNIT_SIZE", Refused;
    /// The source changed while it was read.
    SourceChanged = "E_SOURCE_CHANGED", Refused;
    /// The source cannot be read.
    Read = "E_READ", Io;
    /// The target cannot be written.
    Write = "E_WRITE", Io;
    /// The target's disk is full, or would be.
    NoSpace = "E_NO_SPACE", Space;
    /// The memory budget is too small, or the system does not give it.
    NoMemory = "E_NO_MEMORY", Space;
    /// The target exists and is not this result.
    TargetExists = "E_TARGET_EXISTS", TargetExists;
    /// Another run is writing the target.
    TargetBusy = "E_TARGET_BUSY", TargetExists;
    /// The target is the source.
    TargetIsSource = "E_TARGET_IS_SOURCE", Usage;
    /// A file stands where the partial file would go, and it is not one of ours.
    PartialForeign = "E_PARTIAL_FOREIGN", TargetExists;
    /// What was written does not decode to the source.
    Verify = "E_VERIFY", Mismatch;
    /// There is no NVIDIA driver or GPU to decode on.
    NoGpu = "E_NO_GPU", Usage;
    /// The official decode kernel is not here, or the file is another.
    NoKernel = "E_NO_KERNEL", Usage;
    /// A function of the NVIDIA driver failed.
    Gpu = "E_GPU", Io;
    /// Stopped on request.
    Cancelled = "E_CANCELLED", Cancelled;
    /// A fault of this program.
    Internal = "E_INTERNAL", Internal;
}

/// A refusal or failure.
#[derive(Clone, Debug)]
pub struct Error {
    /// Its stable code.
    pub code: Code,
    /// One sentence for a person, without place and remedy.
    pub message: String,
    /// What to do about it; empty where nothing can be said.
    pub hint: String,
    /// The file.
    pub path: Option<PathBuf>,
    /// The compression unit.
    pub unit: Option<String>,
    /// The tensor, by the name that the file gives it.
    pub tensor: Option<String>,
    /// Index of the weight within the tensor.
    pub index: Option<u64>,
    /// Further faults that were found with this one.
    pub also: Vec<Error>,
}

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with a code and a sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: match code {
                Code::Internal => "Please report it.".to_owned(),
                _ => String::new(),
            },
            path: None,
            unit: None,
            tensor: None,
            index: None,
            also: Vec::new(),
        }
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Names the file, where none is named yet.
    #[must_use]
    pub fn at_path(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// Names the file for this fault and those that were found with it.
    #[must_use]
    pub fn all_at_path(mut self, path: &Path) -> Self {
        let also = self.also.into_iter();
        self.also = also.map(|other| other.at_path(path)).collect();
        self.at_path(path)
    }

    /// Names the unit.
    #[must_use]
    pub fn in_unit(mut self, unit: &str) -> Self {
        self.unit = Some(unit.to_owned());
        self
    }

    /// Names the tensor.
    #[must_use]
    pub fn in_tensor(mut self, tensor: &str) -> Self {
        self.tensor = Some(tensor.to_owned());
        self
    }

    /// Names the index.
    #[must_use]
    pub fn at_index(mut self, index: u64) -> Self {
        self.index = Some(index);
        self
    }

    /// A failed read of `path`.
    pub fn read(path: &Path, source: &io::Error) -> Self {
        Self::new(Code::Read, format!("cannot be read: {source}"))
            .hint("Check the name, the disk, and the permissions.")
            .at_path(path)
    }

    /// A failed write to `path`; a full disk gets its own code.
    pub fn write(path: &Path, source: &io::Error) -> Self {
        let (code, what, hint) = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
                Code::NoSpace,
                "there is no room left",
                "Free some space or choose another folder; nothing was left behind.",
            ),
            io::ErrorKind::FileTooLarge => (
                Code::NoSpace,
                "the file would be larger than is allowed here",
                "Raise the limit on file sizes (ulimit -f), or choose a disk that holds larger files; nothing was left behind.",
            ),
            _ => (
                Code::Write,
                "cannot be written",
                "Check that the folder exists and may be written to.",
            ),
        };
        Self::new(code, format!("{what}: {source}"))
            .hint(hint)
            .at_path(path)
    }

    /// Says what was being done with the file.
    #[must_use]
    pub fn during(mut self, what: &str) -> Self {
        self.message = format!("{} ({what})", self.message);
        self
    }

    /// Adds this one to what was found so far. A file may hold a fault for each of its tensors: beyond some, only that there are more is told.
    pub fn add_to(self, faults: &mut Vec<Self>) {
        const MOST: usize = 100;
        if faults.len() < MOST {
            faults.push(self);
        } else if faults.len() == MOST {
            let more = Self::new(self.code, "there are further faults, which are not listed");
            faults.push(more.hint("Mend these first."));
        }
    }

    /// The first error with the others attached, or nothing where there are none.
    pub fn collect(mut errors: Vec<Self>) -> Option<Self> {
        if errors.is_empty() {
            return None;
        }
        let mut first = errors.remove(0);
        first.also.append(&mut errors);
        Some(first)
    }
}

impl Error {
    /// Place, message and hint as one line, without the faults that were found with it.
    fn line(&self) -> String {
        let path = self
            .path
            .as_ref()
            .map(|path| format!("{}: ", path.display()));
        let unit = self.unit.as_ref().map(|unit| format!("unit {unit}: "));
        let tensor = self
            .tensor
            .as_ref()
            .map(|tensor| format!("tensor {tensor}: "));
        let index = self.index.map(|index| format!("index {index}: "));
        let place = [path, unit, tensor, index]
            .into_iter()
            .flatten()
            .collect::<String>();
        let end = if self.message.ends_with(['.', '?', '!']) {
            ""
        } else {
            "."
        };
        let gap = if self.hint.is_empty() { "" } else { " " };
        printable(&format!("{place}{}{end}{gap}{}", self.message, self.hint))
    }
}

/// Text with its control characters escaped: names come from files, and must not write to a terminal.
pub fn printable(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            String::from(c)
        }
    };
    text.chars().map(escaped).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        self.also
            .iter()
            .try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl std::error::Error for Error {}
