//! Tests of the `df11` program as its users see it.

// Helpers fail as the tests do that call them.
#![allow(clippy::panic, clippy::unwrap_used)]

mod bench;
mod common;
mod completions;
mod env;
mod exit_codes;
mod kernel_level;
mod killed;
mod output;
mod restore;
mod sizes;
