//! What the user can choose.

use std::path::PathBuf;

use df11_codec::{Kernel, KernelError};

use crate::{
    architectures::Choice,
    error::{Code, Error, Result},
};

/// How the header of the result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderMode {
    /// Passthrough tensors keep their dtype and bytes, and metadata tells how to restore the source.
    #[default]
    SelfDescribing,
    /// The whole file byte for byte as the official node writes it.
    Official,
}

/// Whether written bytes are decoded and compared before the file is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Everything.
    #[default]
    Full,
    /// Nothing.
    Off,
}

/// What to do where the target exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Skip what already is this result, refuse anything else.
    #[default]
    Skip,
    /// Refuse.
    Error,
    /// Replace it, once the new file is complete.
    Replace,
    /// Write beside it under a numbered name.
    Number,
}

/// What to do with unit weights that are not BF16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cast {
    /// Refuse them.
    #[default]
    None,
    /// Round F32 and F16 to BF16, as the official node does.
    ToBf16,
}

/// How the source is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// In the way that the job's first reads show to be the faster one.
    #[default]
    Auto,
    /// One read after the other.
    Sequential,
    /// Several reads at once.
    Parallel,
}

/// How a result lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One file.
    File,
    /// A folder with a file for each unit, one for the other tensors, and a configuration.
    Folder,
    /// A folder with one file for all tensors, and a configuration.
    FolderSingle,
}

/// The version that the configuration of a DF11 folder names. The format is the same in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfigVersion {
    /// Of most published models.
    V020,
    /// Of a release in between.
    V030,
    /// Of Wan, Qwen-Image and FLUX.1 Krea.
    V031,
    /// Of Qwen-Image-Edit.
    V032,
    /// Of the current release.
    #[default]
    V050,
}

macro_rules! named {
    ($type:ident { $($variant:ident = $text:literal),+ }) => {
        impl $type {
            /// The names users know it by.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(crate::error::Error::new(
                        crate::error::Code::Option,
                        format!("there is no choice {text}"),
                    )
                    .hint(format!("Choose one of {}.", Self::NAMES.join(", ")))),
                }
            }
        }
    };
}

pub(crate) use named;

named!(HeaderMode { SelfDescribing = "self-describing", Official = "official" });
named!(Verify { Full = "full", Off = "off" });
named!(IfExists { Skip = "skip", Error = "error", Replace = "replace", Number = "number" });
named!(Io { Auto = "auto", Sequential = "sequential", Parallel = "parallel" });
named!(Form { File = "file", Folder = "folder", FolderSingle = "folder-single" });
named!(ConfigVersion {
    V020 = "0.2.0", V030 = "0.3.0", V031 = "0.3.1", V032 = "0.3.2", V050 = "0.5.0"
});
named!(Cast { None = "none", ToBf16 = "to-bf16" });

/// All choices of one compression.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The architecture.
    pub architecture: Choice,
    /// The header.
    pub header: HeaderMode,
    /// How the result lies on the disk; none: by the target's name and the architecture.
    pub form: Option<Form>,
    /// The version that a folder's configuration names.
    pub config_version: ConfigVersion,
    /// Verification.
    pub verify: Verify,
    /// Existing targets.
    pub if_exists: IfExists,
    /// Other dtypes.
    pub cast: Cast,
    /// Units that DF11 cannot hold or would make larger are left as they are, where the loader takes them so.
    pub keep_uncompressed: bool,
    /// What an interrupted run has finished is not taken over.
    pub no_resume: bool,
    /// Folders of architecture files; later ones win.
    pub definitions: Vec<PathBuf>,
    /// Most resident memory in bytes; none: chosen from what is available.
    pub max_memory: Option<u64>,
    /// Most bytes of the source to read per second.
    pub max_rate: Option<u64>,
    /// How the source is read; with [`Self::max_rate`] one read after the other.
    pub io: Io,
    /// Worker threads; none: all cores.
    pub threads: Option<usize>,
    /// Worker threads give way to other programs.
    pub low_priority: bool,
    /// The implementation of the hot loops.
    pub kernel: Kernel,
}

impl Verify {
    /// Stages that every byte goes through: read, encode or write, and verify.
    pub(crate) fn stages(self) -> u64 {
        match self {
            Self::Full => 3,
            Self::Off => 2,
        }
    }
}

/// The kernel of this name; without one the fastest that is sound here.
///
/// # Errors
/// `E_OPTION` where there is no such kernel, or the processor cannot run it.
pub fn kernel(name: Option<&str>) -> Result<Kernel> {
    let wrong = |error: KernelError| {
        Error::new(Code::Option, error.to_string())
            .hint("Set DF11_KERNEL to another name, or not at all.")
    };
    name.map_or(Ok(Kernel::best()), |name| name.parse().map_err(wrong))
}
