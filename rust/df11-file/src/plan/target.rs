//! Where the result goes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use same_file::is_same_file;

use crate::{
    error::{Code, Error, Result},
    options::{Form, IfExists},
    source::Config,
};

/// The target of what is made of `source`, a file or a folder, with the rule for existing ones applied as far as a name decides it.
///
/// # Errors
/// `E_TARGET_IS_SOURCE`, also for what would lie in the source's folder or hold it; `E_TARGET_EXISTS` under [`IfExists::Error`], for what is no file or
/// folder, and for a folder to be replaced that is none of DF11 files; `E_WRITE` where the folder is missing, `E_OPTION` where the target has no name.
pub fn choose(
    source: &Path,
    target: Option<&Path>,
    (form, if_exists): (Form, IfExists),
) -> Result<PathBuf> {
    let target = target.map_or_else(|| beside(source, form), Path::to_path_buf);
    let folder = folder_of(&target);
    if !folder.is_dir() {
        return Err(Error::new(Code::Write, "the folder does not exist")
            .hint("Create it or choose another.")
            .at_path(&folder));
    }
    let is_folder = form != Form::File;
    // Asked before it is opened, and before anything could replace it: a folder, a pipe, a device.
    let is_wrong = |found: fs::Metadata| match if_exists {
        // Another name is chosen.
        IfExists::Number => !found.is_file() && !found.is_dir(),
        _ if is_folder => !found.is_dir(),
        _ => !found.is_file(),
    };
    if fs::metadata(&target).is_ok_and(is_wrong) {
        let what = if is_folder { "folder" } else { "file" };
        let message = format!("the target is not a {what}");
        return Err(Error::new(Code::TargetExists, message)
            .hint(format!("Name a {what} in a folder."))
            .at_path(&target));
    }
    if target.file_name().is_none() {
        return Err(Error::new(Code::Option, "the target has no name")
            .hint("Name a file or a folder in another."));
    }
    if is_same_file(source, &target).unwrap_or(false) {
        return Err(
            Error::new(Code::TargetIsSource, "the target is the source itself")
                .hint("Choose another name.")
                .at_path(&target),
        );
    }
    if overlaps(source, &target, &folder) {
        let message = "the result would lie in the folder of the source, or hold it";
        return Err(Error::new(Code::TargetIsSource, message)
            .hint("Choose another folder.")
            .at_path(&target));
    }
    let is_taken = is_taken(&target);
    match if_exists {
        IfExists::Error if is_taken => Err(exists(&target)),
        IfExists::Replace if is_taken && is_folder && !is_df11_folder(&target) => {
            let message = "the folder exists, and holds something else than a DF11 model";
            Err(Error::new(Code::TargetExists, message)
                .hint("Choose another name.")
                .at_path(&target))
        }
        IfExists::Number => Ok(first_free(&target, form)),
        _ => Ok(target),
    }
}

/// Whether a target lies in the source's folder, or is a folder that holds the source.
fn overlaps(source: &Path, target: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let lies_in = |path: Option<PathBuf>, place: Option<PathBuf>| {
        path.zip(place)
            .is_some_and(|(path, place)| path.starts_with(place))
    };
    let model = model_folder(source);
    lies_in(real(folder), model.and_then(|model| real(&model)))
        || (target.is_dir() && lies_in(real(source), real(target)))
}

/// Refuses a target that is a file of the source or holds one, which a link in the source's folder may lead to.
///
/// # Errors
/// `E_TARGET_IS_SOURCE`.
pub fn check_apart<'a>(mut files: impl Iterator<Item = &'a Path>, target: &Path) -> Result<()> {
    let Ok(target) = target.canonicalize() else {
        return Ok(());
    };
    let real = |file: &Path| file.canonicalize().unwrap_or_default();
    let Some(file) = files.find(|file| real(file).starts_with(&target)) else {
        return Ok(());
    };
    let message = "what would be replaced is, or holds, a file of the source";
    Err(Error::new(Code::TargetIsSource, message)
        .hint("Choose another name.")
        .at_path(file))
}

/// Whether something stands at `target` that could be lost: an empty folder holds nothing.
pub fn is_taken(target: &Path) -> bool {
    let is_empty = |mut entries: fs::ReadDir| entries.next().is_none();
    target.exists() && !fs::read_dir(target).is_ok_and(is_empty)
}

/// Whether a folder is one of a DF11 model, by its configuration.
pub fn is_df11_folder(folder: &Path) -> bool {
    let config = Config::read(folder).ok().flatten();
    config.is_some_and(|config| config.is_df11())
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

/// `<name>-DF11`, of a file with `.safetensors`, beside a file, or beside the folder that holds the source.
fn beside(source: &Path, form: Form) -> PathBuf {
    let ending = if form == Form::File {
        ".safetensors"
    } else {
        ""
    };
    let Some(folder) = model_folder(source) else {
        return source.with_file_name(format!("{}-DF11{ending}", stem(source)));
    };
    // A folder may be named by dots, which tell neither its name nor what it lies in.
    let folder = folder.canonicalize().unwrap_or(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{name}-DF11{ending}"))
}

/// The folder of a source that is more than a file: itself, or that of the index.
fn model_folder(source: &Path) -> Option<PathBuf> {
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

fn first_free(target: &Path, form: Form) -> PathBuf {
    let extension = target
        .extension()
        .filter(|_| form == Form::File)
        .map_or(String::new(), |extension| {
            format!(".{}", extension.to_string_lossy())
        });
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(&extension).unwrap_or(&name);
    let numbered =
        (2_u32..).map(|number| target.with_file_name(format!("{stem}-{number}{extension}")));
    std::iter::once(target.to_path_buf())
        .chain(numbered)
        // No file takes the place of a folder, not even of an empty one.
        .find(|path| !(is_taken(path) || form == Form::File && path.is_dir()))
        .unwrap_or_else(|| target.to_path_buf())
}
