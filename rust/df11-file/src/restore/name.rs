//! The name of a restored file. The one that a DF11 file tells is text from a file, and could be any.

use std::path::{Path, PathBuf};

use same_file::is_same_file;

use crate::{file_name, options::Form};

/// The file or folder beside `path` that has its source's name where that is told and harmless; else, and where that is `path` itself,
/// `NAME-restored.safetensors` for `NAME-DF11.safetensors`, `NAME-restored` for a folder.
pub fn beside(path: &Path, source_name: Option<&str>, form: Form) -> PathBuf {
    // A folder may be named by dots, which tell neither its name nor what it lies in.
    let real = path.is_dir().then(|| path.canonicalize().ok()).flatten();
    let path = real.as_deref().unwrap_or(path);
    let is_file = form == Form::File;
    let named = source_name
        .and_then(if is_file { harmless } else { harmless_folder })
        .map(|name| path.with_file_name(name))
        .filter(|named| !is_same_file(path, named).unwrap_or(false));
    named.unwrap_or_else(|| {
        let whole = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = [".safetensors", ".sft"];
        let ending = ending.iter().find(|ending| whole.ends_with(*ending));
        let stem = match ending {
            Some(ending) => whole.strip_suffix(ending).unwrap_or(&whole),
            None => &whole,
        };
        let stem = stem.strip_suffix("-DF11").unwrap_or(stem);
        let ending = if is_file { ".safetensors" } else { "" };
        path.with_file_name(format!("{stem}-restored{ending}"))
    })
}

/// The last component of a name, where it is a plain name of a folder on every system.
fn harmless_folder(name: &str) -> Option<&str> {
    let name = name.rsplit(['/', '\\']).next()?;
    file_name::complaint(name).is_none().then_some(name)
}

/// The last component of a name, where it is a plain file name of a checkpoint on every system.
fn harmless(name: &str) -> Option<&str> {
    let name = harmless_folder(name)?;
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    let is_checkpoint = ["safetensors", "sft"].contains(&ending.as_str());
    is_checkpoint.then_some(name)
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
