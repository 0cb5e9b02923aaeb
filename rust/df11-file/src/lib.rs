//! Checkpoints on disk: from a BF16 safetensors file to a DF11 file in bounded memory.
//!
//! ```text
//! Source (header, positioned reads) + Library (architectures) --plan--> Plan: units, passthrough tensors, every refusal
//! Plan --Job--> reader thread -> survey -> encode -> verify -> PartialFile -> target      Progress is polled
//! ```
//!
//! This crate never prints, never reads environment variables and knows nothing of Python.

pub mod architectures;
pub mod bench;
pub mod budget;
mod changes;
pub mod check;
mod contents;
mod convert;
pub mod error;
mod fault;
mod file_name;
mod hash;
pub mod header;
mod job;
pub mod journal;
pub mod machine;
pub mod options;
mod ordered;
mod output;
mod pipeline;
mod plan;
pub mod progress;
mod report;
pub mod restore;
mod source;
mod stored;
mod sync;
mod system;
mod task;
mod turns;

pub use contents::{Contents, Df11Contents, DtypeShare, StoredUnitSummary, contents};
pub use error::{Class, Code, Error, Result};
pub use job::Job;
pub use options::Options;
pub use plan::{Plan, PlanReport, plan};
pub use progress::{Phase, Snapshot};
pub use report::{CastReport, LeftUnit, Report, Status, UnitReport};
pub use source::Source;
pub use system::reserve;
pub use task::Task;
