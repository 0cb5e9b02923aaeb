//! The safetensors header: strict reading with limits, and writing in the order of the official tool.

mod parse;
mod shards;
mod write;

pub use parse::parse;
pub use safetensors::Dtype;
pub(crate) use shards::{ShardText, merge, parse_text, text as shards_text};
pub use write::{TensorEntry, check_with_reference, official_order, serialize};

/// Longest header that is read, in bytes; the reference implementation's own limit.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// What to do about a truncated file.
pub(crate) const TRUNCATED_HINT: &str =
    "If a download or copy is still running, wait for its end; otherwise repeat it.";

/// The one member of a header that is not a tensor.
pub const METADATA: &str = "__metadata__";

/// One tensor of a header. Offsets are bytes from the start of the data, behind the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name in the file.
    pub name: String,
    /// Its dtype.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<u64>,
    /// First byte.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
}

impl TensorInfo {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// A header, checked: names are unique, and the tensors cover the data without hole or overlap.
#[derive(Clone, Debug)]
pub struct Header {
    /// The tensors in the order of the header's text.
    pub tensors: Vec<TensorInfo>,
    /// The entries of `__metadata__`, in order.
    pub metadata: Vec<(String, String)>,
    /// Bytes of data that the tensors cover.
    pub data_bytes: u64,
}

impl Header {
    /// The value of a metadata key.
    pub fn meta(&self, key: &str) -> Option<&str> {
        self.metadata
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }
}
