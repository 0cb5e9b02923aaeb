//! The file or folder being written: its partial form, where each tensor lies in it, and what it says about itself.

mod file_map;
pub mod flush;
mod folder;
mod form;
pub mod manifest;
mod open_files;
mod partial;
mod stream;

pub use file_map::{FileMap, UNKNOWN, UnitPlace, split_positions, unit_tensors};
pub use form::{FILE_SPAN, FileHeader, FileNames, Output, kept_aside, left_was_replaced};
pub use partial::{MARKER, PartialFile};
pub use stream::{Region, TensorStream};
