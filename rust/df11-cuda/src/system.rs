//! Where the system keeps the driver. The only module with platform code.

#![allow(unsafe_code)]

use std::path::Path;

use libloading::{Error, Library};

/// Loads the driver's library: that of `path`, or the system's.
///
/// # Errors
/// What the system says where there is none.
pub fn load(path: Option<&Path>) -> Result<Library, Error> {
    match path {
        // SAFETY: loading runs the library's own start code. Whoever names a library vouches for it, as for a program that is started.
        Some(path) => unsafe { Library::new(path) },
        None => installed(),
    }
}

#[cfg(not(windows))]
fn installed() -> Result<Library, Error> {
    // SAFETY: the system's search finds the driver that its owner installed; its start code expects nothing of the program.
    unsafe { Library::new("libcuda.so.1") }
}

#[cfg(windows)]
fn installed() -> Result<Library, Error> {
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_SYSTEM32, Library as Found};
    // SAFETY: as above. Only the system's own folder is searched, so that no file in the current one is taken for the driver.
    unsafe { Found::load_with_flags("nvcuda.dll", LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Into::into)
}
