//! What the tests share.

pub mod checkpoint;
pub mod expected;
pub mod folder;
pub mod forged;
pub mod gpu;
pub mod mount;
pub mod result;
pub mod shaped;
pub mod weights;
pub mod world;

/// Says, past the capture of the test harness, that a test did not run.
pub fn skip(reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIP {reason}");
}
