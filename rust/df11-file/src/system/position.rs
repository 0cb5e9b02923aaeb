//! Reads and writes of a whole range of a file, whatever one call does of it.

use std::{fs::File, io};

/// Reads exactly `buffer.len()` bytes at `offset`.
///
/// # Errors
/// Those of the operating system; `UnexpectedEof` where the file ends before.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    fill(buffer, offset, |buffer, offset| {
        std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
    })
}

/// Writes all of `bytes` at `offset`.
///
/// # Errors
/// Those of the operating system.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(windows)]
    drain(bytes, offset, |bytes, offset| {
        std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
    })
}

/// Calls `read` until the buffer is full.
#[cfg(any(test, windows))]
fn fill(
    mut buffer: &mut [u8],
    mut offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Calls `write` until all bytes are written.
#[cfg(any(test, windows))]
fn drain(
    mut bytes: &[u8],
    mut offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the next call does: so many bytes at most, or this error.
    type Script = Vec<Result<usize, io::ErrorKind>>;

    fn next(script: &mut Script, length: usize) -> io::Result<usize> {
        Ok(script.remove(0)?.min(length))
    }

    #[test]
    fn short_and_interrupted_calls_are_gone_on_with() {
        let data: Vec<u8> = (0..10).collect();
        let script = || vec![Ok(3), Err(io::ErrorKind::Interrupted), Ok(1), Ok(100)];
        let (mut calls, mut buffer) = (script(), [0; 6]);
        let read = |buffer: &mut [u8], offset: u64| {
            let count = next(&mut calls, buffer.len())?;
            buffer[..count].copy_from_slice(&data[offset as usize..][..count]);
            Ok(count)
        };
        fill(&mut buffer, 2, read).unwrap();
        assert_eq!(buffer, data[2..8]);
        let (mut calls, mut written) = (script(), vec![0; 10]);
        let write = |bytes: &[u8], offset: u64| {
            let count = next(&mut calls, bytes.len())?;
            written[offset as usize..][..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        };
        drain(&data[2..8], 2, write).unwrap();
        assert_eq!(written[2..8], data[2..8]);
    }

    #[test]
    fn ends_and_errors_are_told() {
        for (call, expected) in [
            (Ok(0), io::ErrorKind::UnexpectedEof),
            (
                Err(io::ErrorKind::PermissionDenied),
                io::ErrorKind::PermissionDenied,
            ),
        ] {
            let mut calls = vec![Ok(1), call];
            let outcome = fill(&mut [0; 4], 0, |buffer, _| next(&mut calls, buffer.len()));
            assert_eq!(outcome.unwrap_err().kind(), expected);
        }
        let outcome = drain(&[0; 4], 0, |_, _| Ok(0));
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
