//! A folder of a model, of diffusers or transformers: its configuration, and one file or several with their index.

use std::{fs, path::Path, path::PathBuf};

use super::{
    Config, Source, SourceFolder, config,
    file::SafetensorsFile,
    index::{self, Index},
};
use crate::{
    error::{Code, Error, Result},
    plan::folder_of,
};

/// The names under which diffusers and transformers look for a model.
const USUAL: [&str; 2] = ["diffusion_pytorch_model", "model"];
const ENDING: &str = ".safetensors";
const PICKLE: &str = ".bin";
/// The file that says what parts a pipeline has.
const PIPELINE: &str = "model_index.json";

/// Opens a folder, or an index, with headers of at most so many bytes in all.
///
/// # Errors
/// Those of [`Source::open`].
pub fn open(path: &Path, longest_header: u64) -> Result<Source> {
    let is_folder = path.is_dir();
    let folder = if is_folder {
        path.to_path_buf()
    } else {
        folder_of(path)
    };
    let config = Config::read(&folder)?;
    let parts = if !is_folder {
        Parts::Index(path.to_path_buf())
    } else if config.as_ref().is_some_and(Config::is_df11) {
        // Its loader takes all files, whatever they are called.
        Parts::Files(of_df11(&folder)?)
    } else {
        find(&folder)?
    };
    let (files, index, longest) = match parts {
        Parts::Files(files) => (files, None, longest_header),
        Parts::Index(path) => {
            let index = Index::read(&path, longest_header)?;
            let files = index.files().iter().map(|name| folder.join(name)).collect();
            let longest = longest_header.saturating_sub(index.text.len() as u64);
            (files, Some((path, index)), longest)
        }
    };
    let opened = open_all(&files, longest)?;
    if let Some((path, index)) = &index {
        index
            .check(&opened)
            .map_err(|error| error.all_at_path(path))?;
    }
    let index = index.map(|(path, index)| {
        let name = path.file_name().unwrap_or_default();
        (name.to_string_lossy().into_owned(), index.text.into())
    });
    let folder = SourceFolder {
        path: folder,
        index,
        config,
    };
    Source::of_files(path, opened, folder)
}

/// Opens all files. Every fault of every file is named.
fn open_all(
    files: &[PathBuf],
    longest_header: u64,
) -> Result<Vec<(SafetensorsFile, crate::header::Header, Vec<u8>)>> {
    let (mut opened, mut faults, mut left) = (Vec::new(), Vec::new(), longest_header);
    for path in files {
        match SafetensorsFile::open(path, left) {
            Ok(file) => {
                left = left.saturating_sub(file.2.len() as u64);
                opened.push(file);
            }
            Err(error) => error.add_to(&mut faults),
        }
    }
    Error::collect(faults).map_or(Ok(opened), Err)
}

/// Where a folder's tensors are.
enum Parts {
    Index(PathBuf),
    Files(Vec<PathBuf>),
}

fn find(folder: &Path) -> Result<Parts> {
    let names = names(folder)?;
    let ending = |ending: &str| -> Vec<&String> {
        let names = names.iter();
        names.filter(|name| name.ends_with(ending)).collect()
    };
    let (indices, files) = (ending(index::ENDING), ending(ENDING));
    let usual = |found: &[&String], ending: &str| {
        let is_usual = |name: &&&String| {
            let stem = name.strip_suffix(ending);
            stem.is_some_and(|stem| USUAL.contains(&stem))
        };
        let mut usual = found.iter().filter(is_usual);
        match (usual.next(), usual.next(), found) {
            (Some(one), None, _) | (None, None, [one]) => Some(folder.join(one)),
            _ => None,
        }
    };
    let index = usual(&indices, index::ENDING);
    let file = usual(&files, ENDING);
    let whole = USUAL.map(|stem| format!("{stem}{ENDING}"));
    let has_whole = files.iter().any(|file| whole.contains(file));
    match (index, file) {
        (Some(index), _) if !has_whole => Ok(Parts::Index(index)),
        (None, Some(file)) if indices.is_empty() => Ok(Parts::Files(vec![file])),
        _ if files.is_empty() => Err(no_model(folder, &names)),
        _ => {
            let found: Vec<_> = indices
                .iter()
                .chain(&files)
                .map(|name| name.as_str())
                .collect();
            let message = format!(
                "nothing tells which of these files are the model: {}",
                listed(&found)
            );
            Err(Error::new(Code::Index, message)
                .hint("Name one of them, an index or a file, as the source."))
        }
    }
}

/// The files of a DF11 folder.
fn of_df11(folder: &Path) -> Result<Vec<PathBuf>> {
    let names = names(folder)?;
    let files = names.iter().filter(|name| name.ends_with(ENDING));
    let files: Vec<_> = files.map(|name| folder.join(name)).collect();
    if files.is_empty() {
        return Err(no_model(folder, &names));
    }
    Ok(files)
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::read(folder, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn no_model(folder: &Path, names: &[String]) -> Error {
    let has = |name: &str| names.iter().any(|found| found == name);
    let (message, hint) = if has(PIPELINE) {
        (
            "this is the folder of a whole pipeline",
            "Name the folder of one model in it, such as its transformer.",
        )
    } else if names.iter().any(|name| name.ends_with(PICKLE)) {
        (
            "this folder holds a model as pickle files (.bin)",
            "Convert it to .safetensors first.",
        )
    } else if has(config::NAME) {
        (
            "this folder has the configuration of a model, but no .safetensors file",
            "Download the model's files too.",
        )
    } else {
        (
            "this is a folder without .safetensors files",
            "Choose a .safetensors file, or the folder of a model.",
        )
    };
    let error = Error::new(Code::NotSafetensors, message).hint(hint);
    error.at_path(folder)
}

/// The first names of a list.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 8;
    let more = if names.len() > MOST { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(MOST)].join(", "))
}
