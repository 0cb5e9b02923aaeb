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

use df11_file::{Code, Error, Report};

/// Of runs for one target at the same time one succeeds at least; the others say that they met.
pub fn assert_one_succeeds(outcomes: &[Result<Report, Error>]) {
    assert!(outcomes.iter().any(Result::is_ok), "{outcomes:?}");
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        let expected = [
            Code::TargetBusy,
            Code::TargetExists,
            Code::PartialForeign,
            Code::Write,
        ];
        assert!(expected.contains(&error.code), "{error}");
    }
}

/// Says, past the capture of the test harness, that a test did not run.
pub fn skip(reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIP {reason}");
}
