//! Shared by the integration tests. Not every test file uses every item.
#![allow(dead_code)]

pub mod assert;
pub mod distributions;
pub mod oracle;
pub mod unit;
pub mod weights;
