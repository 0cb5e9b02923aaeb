//! The kernel's file.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::error::{Code, Error, Result};

/// The kernel's name in its file.
pub const NAME: &CStr = c"decode";
/// Its arguments: six addresses, then rows of `luts`, bytes of codes, weights.
const ARGUMENTS: [&str; 9] = [
    ".u64", ".u64", ".u64", ".u64", ".u64", ".u64", ".u32", ".u32", ".u32",
];
/// Most bytes of such a file; that of `dfloat11` 0.5.0 has 23,711.
const MAX_BYTES: u64 = 1 << 20;

/// The kernel as text.
#[derive(Debug)]
pub struct Ptx {
    pub text: CString,
    pub path: PathBuf,
}

impl Ptx {
    /// Reads the file, and refuses what is not the decode kernel.
    ///
    /// # Errors
    /// `E_NO_KERNEL`, `E_READ`.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let hint = "Name decode.ptx of the Python package dfloat11 0.5.0 with --kernel-ptx, or choose the level full, which needs none.";
        let refused = |message: &str| Error::new(Code::NoKernel, message).hint(hint);
        let path = path.ok_or_else(|| {
            refused("the decode kernel is not here: no Python package dfloat11 was found")
        })?;
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| Error::read(path, &error))?;
        file.take(MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::read(path, &error))?;
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|text| takes_expected_arguments(text));
        let text = text.and_then(|text| CString::new(text).ok());
        let text = text.ok_or_else(|| {
            refused("the file is not the decode kernel of dfloat11 0.5.0").at_path(path)
        })?;
        Ok(Self {
            text,
            path: path.to_path_buf(),
        })
    }
}

/// Whether the text has the kernel, with its arguments: other versions take others.
fn takes_expected_arguments(text: &str) -> bool {
    let arguments = text
        .split_once(".entry decode(")
        .and_then(|(_, rest)| rest.split_once(')'));
    arguments.is_some_and(|(list, _)| {
        list.split(',')
            .map(|one| one.split_whitespace().nth(1))
            .eq(ARGUMENTS.map(Some))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(types: &[&str]) -> String {
        let list: Vec<_> = types
            .iter()
            .map(|of| format!("\t.param {of} decode_param\n"))
            .collect();
        format!(
            ".version 8.2\n.visible .entry decode(\n{}\n)\n{{ ret; }}",
            list.join(",")
        )
    }

    #[test]
    fn other_kernels_are_told_apart() {
        assert!(takes_expected_arguments(&text(&ARGUMENTS)));
        assert!(!takes_expected_arguments(&text(&ARGUMENTS[1..])));
        assert!(!takes_expected_arguments(&text(&[".u64"; 9])));
        assert!(!takes_expected_arguments(
            &text(&ARGUMENTS).replace("decode(", "encode(")
        ));
        assert!(!takes_expected_arguments(""));
    }
}
