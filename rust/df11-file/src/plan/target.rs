//! Where the result goes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use same_file::is_same_file;

use crate::{
    error::{Code, Error, Result},
    options::IfExists,
};

/// The target of what is made of `source`, with the rule for existing files applied as far as a name decides it.
///
/// # Errors
/// `E_TARGET_IS_SOURCE`, also for a file in the source's folder; `E_TARGET_EXISTS` under [`IfExists::Error`] and for what is no file, `E_WRITE` where the folder is missing,
/// `E_OPTION` where the target has no name.
pub fn choose(source: &Path, target: Option<&Path>, if_exists: IfExists) -> Result<PathBuf> {
    let target = target.map_or_else(|| beside(source), Path::to_path_buf);
    let folder = folder_of(&target);
    if !folder.is_dir() {
        return Err(Error::new(Code::Write, "the folder does not exist")
            .hint("Create it or choose another.")
            .at_path(&folder));
    }
    // Asked before it is opened, and before anything could replace it: a folder, a pipe, a device.
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return Err(Error::new(Code::TargetExists, "the target is not a file")
            .hint("Name a file in a folder.")
            .at_path(&target));
    }
    if target.file_name().is_none() {
        return Err(Error::new(Code::Option, "the target has no name").hint("Name a file."));
    }
    if is_same_file(source, &target).unwrap_or(false) {
        return Err(
            Error::new(Code::TargetIsSource, "the target is the source itself")
                .hint("Choose another name.")
                .at_path(&target),
        );
    }
    let lies_in = |place: &Path| is_same_file(place, &folder).unwrap_or(false);
    if model_folder(source).is_some_and(|source| lies_in(&source)) {
        let message = "the result would lie in the folder of the source";
        return Err(Error::new(Code::TargetIsSource, message)
            .hint("Choose another folder.")
            .at_path(&target));
    }
    match if_exists {
        IfExists::Error if target.exists() => Err(exists(&target)),
        IfExists::Number => Ok(first_free(&target)),
        _ => Ok(target),
    }
}

/// The refusal to touch an existing file.
pub fn exists(target: &Path) -> Error {
    Error::new(Code::TargetExists, "the file exists and is not this result")
        .hint("Choose another name, or set 'if exists' to replace or number.")
        .at_path(target)
}

/// The folder that a path lies in.
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// `<name>-DF11.safetensors` beside a file, or beside the folder that holds the source.
fn beside(source: &Path) -> PathBuf {
    let Some(folder) = model_folder(source) else {
        return source.with_file_name(format!("{}-DF11.safetensors", stem(source)));
    };
    // A folder may be named by dots, which tell neither its name nor what it lies in.
    let folder = folder.canonicalize().unwrap_or(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}-DF11.safetensors"))
}

/// The folder of a source that is more than a file: itself, or that of the index.
pub fn model_folder(source: &Path) -> Option<PathBuf> {
    let is_index = || source.extension().is_some_and(|ending| ending == "json");
    if source.is_dir() {
        Some(source.to_path_buf())
    } else {
        is_index().then(|| folder_of(source))
    }
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn first_free(target: &Path) -> PathBuf {
    let extension = target.extension().map_or(String::new(), |extension| {
        format!(".{}", extension.to_string_lossy())
    });
    let numbered = (2_u32..)
        .map(|number| target.with_file_name(format!("{}-{number}{extension}", stem(target))));
    std::iter::once(target.to_path_buf())
        .chain(numbered)
        .find(|path| !path.exists())
        .unwrap_or_else(|| target.to_path_buf())
}
