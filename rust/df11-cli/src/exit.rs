//! Exit codes.

use df11_file::{Class, Error};

/// Done, or already done.
pub const DONE: u8 = 0;
/// Reading or writing failed.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;

/// The exit code of an error.
pub fn code(error: &Error) -> u8 {
    match error.code.class() {
        Class::Usage => USAGE,
        Class::Refused => 3,
        Class::Mismatch => 4,
        Class::Space => 5,
        Class::TargetExists => 6,
        Class::Cancelled => 130,
        Class::Io | Class::Internal => FAILED,
    }
}
