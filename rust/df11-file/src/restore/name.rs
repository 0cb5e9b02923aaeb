//! The name of a restored file. The one that a DF11 file tells is text from a file, and could be any.

use std::path::{Path, PathBuf};

use same_file::is_same_file;

use crate::file_name;

/// The file beside `path` that has its source's name where that is told and harmless; else, and where that is `path` itself, `NAME-restored.safetensors` for
/// `NAME-DF11.safetensors`.
pub fn beside(path: &Path, source_name: Option<&str>) -> PathBuf {
    let named = source_name
        .and_then(harmless)
        .map(|name| path.with_file_name(name))
        .filter(|named| !is_same_file(path, named).unwrap_or(false));
    named.unwrap_or_else(|| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let stem = stem.strip_suffix("-DF11").unwrap_or(&stem);
        path.with_file_name(format!("{stem}-restored.safetensors"))
    })
}

/// The last component of a name, where it is a plain file name of a checkpoint on every system.
fn harmless(name: &str) -> Option<&str> {
    let name = name.rsplit(['/', '\\']).next()?;
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    let is_checkpoint = ["safetensors", "sft"].contains(&ending.as_str());
    (is_checkpoint && file_name::complaint(name).is_none()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_taken() {
        for name in [
            "model.safetensors",
            "v1.5 pruned.SAFETENSORS",
            "Modell-日本.sft",
            "console.safetensors",
            "com10.safetensors",
        ] {
            assert_eq!(harmless(name), Some(name));
        }
        for name in ["/etc/model.sft", "..\\..\\model.sft", "C:\\x\\model.sft"] {
            assert_eq!(harmless(name), Some("model.sft"), "{name}");
        }
    }

    #[test]
    fn others_are_not() {
        let long = format!("{}.safetensors", "a".repeat(200));
        for name in [
            "",
            ".",
            "..",
            "/",
            "a/",
            "a\\..",
            ".safetensors",
            ".hidden.safetensors",
            " a.safetensors",
            "model",
            "model.py",
            "model.safetensors.",
            "model.safetensors ",
            "model.sft:stream.sft",
            "what?.safetensors",
            "a\nb.safetensors",
            "a\0.safetensors",
            "CON.safetensors",
            "nul .tar.safetensors",
            "Lpt1.safetensors",
            "com\u{b9}.safetensors",
            &long,
        ] {
            assert_eq!(harmless(name), None, "{name:?}");
        }
    }
}
