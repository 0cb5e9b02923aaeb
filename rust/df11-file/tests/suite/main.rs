//! Tests of the crate from outside, in one program: it links once.

// Helpers fail as the tests do that call them.
#![allow(clippy::panic, clippy::unwrap_used)]

mod budget_progress;
mod checks;
mod common;
mod every_code;
mod folder_interruptions;
mod folder_marks;
mod folder_names;
mod folder_others;
mod folder_restore;
mod folder_resume;
mod folder_targets;
mod folder_tied;
mod folders;
mod gain;
mod gpu;
mod gpu_failures;
mod header_breaches;
mod header_reference;
mod inputs;
mod interruptions;
mod journals;
mod no_sources;
mod outline;
mod partial_files;
mod refusals;
mod refused_definitions;
mod restore;
mod restore_hostile;
mod restore_plain;
mod restore_plain_refusals;
mod restore_targets;
mod resume;
mod self_description;
mod sharded_sources;
mod skips;
mod source_files;
mod streaming;
mod targets;
mod unit_kinds;
mod verification;
