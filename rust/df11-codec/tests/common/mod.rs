//! Shared by the integration tests. Not every test file uses every item.
#![allow(dead_code)]

pub mod assert;
pub mod distributions;
pub mod oracle;
pub mod unit;
pub mod weights;

use proptest::test_runner::Config;

/// So many cases, or as few as `PROPTEST_CASES` says: an emulated processor is slow.
pub fn config(cases: u32) -> Config {
    let most =
        std::env::var("PROPTEST_CASES").map_or(cases, |cases| cases.parse().expect("a number"));
    Config {
        failure_persistence: None,
        ..Config::with_cases(cases.min(most))
    }
}
