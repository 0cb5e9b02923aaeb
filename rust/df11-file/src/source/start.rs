//! The first bytes of a file: the length of its header, or what the file is instead.

use crate::{
    error::{Code, Error, Result},
    header::{MAX_HEADER_BYTES, TRUNCATED_HINT},
    output::MARKER,
};

/// The header length from the first bytes of a file, or what the file is instead.
pub fn check_start(start: &[u8], file_bytes: u64) -> Result<u64> {
    let not_safetensors =
        |what: &str, hint: &str| Err(Error::new(Code::NotSafetensors, what).hint(hint));
    let text = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if start.is_empty() {
        return not_safetensors(
            "the file is empty",
            "Its download did not start or failed; download it again.",
        );
    }
    if start.starts_with(b"GGUF") {
        return not_safetensors(
            "this is a GGUF file, whose weights are quantised",
            "Use the BF16 safetensors file of the model.",
        );
    }
    // A header length may begin with the same bytes, such as 640 with those of a pickle; then the header's brace follows.
    let is_pickle = [b"PK\x03\x04".as_slice(), b"\x80\x02", b"\x80\x04"]
        .iter()
        .any(|magic| start.starts_with(magic));
    if is_pickle && start.get(8) != Some(&b'{') {
        return not_safetensors(
            "this is a pickle file (.ckpt, .pt)",
            "Convert it to .safetensors first.",
        );
    }
    if text.starts_with("version https://git-lfs") {
        return not_safetensors(
            "this is a git LFS pointer, not the model itself",
            "Fetch the model with `git lfs pull` or download it.",
        );
    }
    if text.starts_with("<!doctype html") || text.starts_with("<html") {
        return not_safetensors(
            "this is a web page, not a model",
            "The download needs a login or another address; download it again.",
        );
    }
    if start.starts_with(MARKER) {
        return not_safetensors(
            "this is the unfinished file of a run that was interrupted, or is still going on",
            "Start that run again; it goes on from there.",
        );
    }
    let Some((length, _)) = start.split_first_chunk::<8>() else {
        return not_safetensors(
            "the file is too short for a safetensors file",
            "Download it again.",
        );
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES {
        return not_safetensors(
            "this is not a safetensors file",
            "Choose a .safetensors file.",
        );
    }
    let available = file_bytes.saturating_sub(8);
    if available < length {
        let message =
            format!("the file is truncated: it has {available} of {length} bytes of its header");
        return Err(Error::new(Code::Truncated, message).hint(TRUNCATED_HINT));
    }
    Ok(length)
}
