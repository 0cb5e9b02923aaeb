//! Opening files: what the first bytes and the header length may be.

use std::{fs, path::Path};

use crate::common::checkpoint::{Layout, Tensor, file_bytes, with_length};
use df11_file::{Code, Error, Source};
use proptest::{collection, prelude::*};
use tempfile::TempDir;

fn open(bytes: &[u8]) -> Result<Source, Error> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, bytes).unwrap();
    Source::open(&path).inspect_err(|error| assert_eq!(error.path.as_deref(), Some(path.as_path())))
}

fn sound() -> Vec<u8> {
    file_bytes(&[Tensor::f32("a", &[1.0, 2.0])], &Layout::default())
}

fn code(bytes: &[u8]) -> Code {
    open(bytes).map(|_| ()).expect_err("a refusal").code
}

#[test]
fn header_lengths_that_lie() {
    let file = sound();
    let with = |length: u64| [&length.to_le_bytes(), &file[8..]].concat();
    let beyond = file.len() as u64 - 8 + 1;
    assert_eq!(code(&with(0)), Code::Header);
    assert_eq!(code(&with(1)), Code::Header);
    assert_eq!(code(&with(beyond)), Code::Truncated);
    assert_eq!(code(&with(100_000_000)), Code::Truncated);
    assert_eq!(code(&with(100_000_001)), Code::NotSafetensors);
    assert_eq!(code(&with(u64::MAX)), Code::NotSafetensors);
    assert_eq!(
        code(&with(beyond - 10)),
        Code::Header,
        "the header is cut short by one byte"
    );
}

#[test]
fn files_that_end_early_or_late() {
    let file = sound();
    let header_end = file.len() - 8;
    for length in 0..file.len() {
        let expected = match length {
            0..8 => Code::NotSafetensors,
            _ => Code::Truncated,
        };
        assert_eq!(
            code(&file[..length]),
            expected,
            "{length} of {} bytes",
            file.len()
        );
        let message = open(&file[..length]).unwrap_err().message;
        assert!(length < 8 || message.contains("truncated"), "{message}");
    }
    assert!(
        open(&file[..header_end])
            .unwrap_err()
            .message
            .contains("0 of 8 bytes of data")
    );
    assert_eq!(code(&[&file[..], b"x"].concat()), Code::TrailingBytes);
}

#[test]
fn a_header_is_one_whatever_its_length() {
    // Some lengths begin with the bytes of other formats: 640 is the start of a pickle of protocol 2, 1152 of protocol 4.
    for length in [640, 1152, 66_176, 0x2020, 0x0a0d] {
        let mut json = br#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#.to_vec();
        json.resize(length, b' ');
        let source =
            open(&with_length(&json, &[7])).unwrap_or_else(|error| panic!("{length}: {error}"));
        assert_eq!(source.header_json(), json);
    }
}

#[test]
fn other_files_are_named() {
    let cases: [(&[u8], &str); 9] = [
        (b"", "empty"),
        (b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0", "GGUF"),
        (
            b"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00\x00\x00",
            "pickle",
        ),
        (b"\x80\x02}q\x00X\x05\x00\x00\x00model", "pickle"),
        (b"\x80\x04\x95\x00\x01\x00\x00\x00\x00\x00\x00{", "pickle"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00",
            "git LFS",
        ),
        (b"\n<!DOCTYPE html>\n<html>", "web page"),
        (b"<HTML><body>", "web page"),
        (b"Access denied", "not a safetensors"),
    ];
    for (bytes, words) in cases {
        let error = open(bytes).expect_err(words);
        assert_eq!(error.code, Code::NotSafetensors);
        assert!(error.message.contains(words), "{error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn things_that_are_no_files() {
    let folder = TempDir::new().unwrap();
    let code = |path: &Path| Source::open(path).expect_err("a refusal").code;
    assert_eq!(code(folder.path()), Code::NotSafetensors);
    assert_eq!(code(&folder.path().join("missing")), Code::Read);
    if cfg!(unix) {
        assert_eq!(code(Path::new("/dev/zero")), Code::NotSafetensors);
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let (done, outcome) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(Source::open(&path).map(|_| ())));
    let outcome = outcome
        .recv_timeout(std::time::Duration::from_secs(5))
        .expect("an answer");
    assert_eq!(outcome.unwrap_err().code, Code::NotSafetensors);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_files_never_panic(bytes in collection::vec(any::<u8>(), 0..80), length in 0_u64..90) {
        let _ = open(&bytes);
        let _ = open(&[&length.to_le_bytes(), b"{".as_slice(), &bytes].concat());
    }
}
