//! A result that is a folder: its files, what each holds, and its configuration.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::Plan;
use crate::{
    architectures::{Architecture, Layout},
    error::{Code, Error, Result},
    file_name::{complaint, folded},
    options::{ConfigVersion, Form, HeaderMode, Options},
    source::{CONFIG_NAME, Config, Source},
};

/// The member of a configuration that loaders ask for.
pub const CONFIG_KEY: &str = "dfloat11_config";
/// Endings of the small files of a model that are no weights: tokenizers, templates, code that belongs to the configuration.
const COPIED_ENDINGS: [&str; 6] = ["json", "txt", "model", "jinja", "tiktoken", "py"];
/// Beginnings of the names of texts that must go with every copy of a model.
const COPIED_BEGINNINGS: [&str; 2] = ["LICENSE", "NOTICE"];
/// What ends with an index's ending belongs to the source's own files.
const INDEX_ENDING: &str = ".index.json";
/// The largest file that is copied; tokenizers have up to 35 MB.
const MAX_COPIED: u64 = 64 << 20;

/// What a folder holds besides tensors.
#[derive(Clone, Debug, Default)]
pub struct FolderPlan {
    /// The text of its `config.json`.
    pub config: String,
    /// Files of the source's folder that are copied, with their sizes.
    pub copies: Vec<(PathBuf, u64)>,
}

/// The form of a result: as chosen, or by the target's name and the architecture.
///
/// # Errors
/// `E_OPTION` for a folder of an architecture that has none.
pub fn form(options: &Options, target: Option<&Path>, known: &Architecture) -> Result<Form> {
    if known.layout == Layout::Comfyui {
        return match options.form {
            None | Some(Form::File) => Ok(Form::File),
            Some(_) => Err(Error::new(
                Code::Option,
                "a model in ComfyUI's layout is one file, as its loaders want it",
            )
            .hint("Choose the layout file.")),
        };
    }
    let named = target.and_then(Path::extension);
    let is_file = named.is_some_and(|ending| ending == "safetensors" || ending == "sft");
    let usual = match known.layout {
        _ if is_file => Form::File,
        Layout::DiffusersSingle => Form::FolderSingle,
        _ => Form::Folder,
    };
    Ok(options.form.unwrap_or(usual))
}

impl FolderPlan {
    /// The folder of `source`'s result.
    ///
    /// # Errors
    /// `E_CONFIG` where the loader needs the source's configuration and there is none; `E_READ`.
    pub fn new(source: &Source, known: &Architecture, version: ConfigVersion) -> Result<Self> {
        let ours = df11_config(known, version);
        if known.layout != Layout::Transformers {
            // The loader asks for nothing else; published models have the second member too.
            let config = json!({ CONFIG_KEY: ours, "model_type": "llama" });
            let config = format!("{config:#}");
            let copies = Vec::new();
            return Ok(Self { config, copies });
        }
        let config = source.config().ok_or_else(|| {
            let message = "its loader builds the model from config.json, which is not here";
            Error::new(Code::Config, message)
                .hint("Name the model's folder as the source, or write one file (layout file).")
        })?;
        Ok(Self {
            config: with_member(config, &ours),
            copies: copies(source)?,
        })
    }

    /// The names of its files.
    pub fn names(&self) -> Vec<String> {
        let copies = self.copies.iter().map(|(path, _)| file_name(path));
        copies.chain([CONFIG_NAME.to_owned()]).collect()
    }
}

/// The name of a file.
pub fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The member that loaders ask for.
fn df11_config(known: &Architecture, version: ConfigVersion) -> Value {
    let patterns = known.pattern_dict();
    let patterns: Map<_, _> = patterns
        .map(|(pattern, attributes)| (pattern.to_owned(), attributes.into()))
        .collect();
    json!({
        "version": version.as_str(),
        "threads_per_block": [512],
        "bytes_per_thread": 8,
        "pattern_dict": patterns,
    })
}

/// The text of a configuration with one member more, and not one character of the others changed: numbers and order mean something to loaders.
fn with_member(config: &Config, value: &Value) -> String {
    let text = config.text.trim_end();
    let trailing = &config.text[text.len()..];
    let members = text.strip_suffix('}').unwrap_or(text).trim_end();
    let comma = if members.ends_with('{') { "" } else { "," };
    let value = format!("{value:#}").replace('\n', "\n  ");
    format!("{members}{comma}\n  \"{CONFIG_KEY}\": {value}\n}}{trailing}")
}

/// The files beside the source's that a loader of the whole folder wants.
fn copies(source: &Source) -> Result<Vec<(PathBuf, u64)>> {
    let Some(folder) = source.folder() else {
        return Ok(Vec::new());
    };
    let failed = |error| Error::read(&folder.path, &error);
    let mut copies = Vec::new();
    for entry in fs::read_dir(&folder.path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Downloads are links to a store of files.
        let stat = fs::metadata(&path).map_err(failed)?;
        if is_copied(&name) && stat.is_file() && stat.len() <= MAX_COPIED {
            copies.push((path.clone(), stat.len()));
        }
    }
    copies.sort();
    Ok(copies)
}

fn is_copied(name: &str) -> bool {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    let is_text = ending.is_some_and(|ending| COPIED_ENDINGS.contains(&ending))
        || COPIED_BEGINNINGS
            .iter()
            .any(|start| name.starts_with(start));
    is_text && name != CONFIG_NAME && !name.ends_with(INDEX_ENDING) && complaint(name).is_none()
}

/// The name of a unit's file.
fn unit_file(unit: &str) -> String {
    format!("{}.safetensors", unit.replace('.', "_"))
}

impl Plan {
    /// The names of a folder's files of tensors: first the one for what belongs to no unit, then one for each unit.
    pub(crate) fn file_names(&self) -> Vec<String> {
        let rest = match (self.form, self.architecture.layout) {
            (Form::Folder, Layout::Diffusers | Layout::DiffusersSingle) => {
                "diffusion_pytorch_model.safetensors"
            }
            _ => "model.safetensors",
        };
        let units = self.units.iter().filter(|_| self.form == Form::Folder);
        let units = units.map(|unit| unit_file(&unit.name));
        [rest.to_owned()].into_iter().chain(units).collect()
    }

    /// For each copied tensor the unit, by index, of whose module it is: the official tool writes a module as a whole.
    pub(crate) fn companions(&self) -> Vec<Option<usize>> {
        if self.form != Form::Folder {
            return vec![None; self.passthrough.len()];
        }
        let units = self.units.iter().enumerate();
        let units: HashMap<_, _> = units
            .map(|(index, unit)| (unit.name.as_str(), index))
            .collect();
        let unit = |name: &str| {
            let mut modules = name.rmatch_indices('.').map(|(dot, _)| &name[..dot]);
            modules.find_map(|module| units.get(module).copied())
        };
        let tensors = self.passthrough.iter();
        tensors.map(|tensor| unit(&tensor.name)).collect()
    }

    /// Whether every unit is counted before the first is written: then all but the smallest are read twice.
    pub(crate) fn surveys_first(&self) -> bool {
        let is_official = self.options.header == HeaderMode::Official;
        (is_official && self.form != Form::Folder) || self.options.keep_uncompressed
    }

    /// The metadata of an official result's first file: libraries that save a folder write it, and want it when they read.
    pub(crate) fn plain_metadata(&self) -> Vec<(String, String)> {
        let is_saved = self.form == Form::Folder;
        let format = || ("format".to_owned(), "pt".to_owned());
        is_saved.then(format).into_iter().collect()
    }

    /// What cannot be a file's name, or would be the name of two.
    pub(crate) fn name_faults(&self) -> Vec<Error> {
        let mut faults = Vec::new();
        let Some(folder) = &self.folder else {
            return faults;
        };
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        let mut take = |name: &str, what: String, unit: Option<&str>| {
            let at_unit = |error: Error| unit.map_or(error.clone(), |unit| error.in_unit(unit));
            if let Some(why) = complaint(name) {
                let message = format!("its file would be called {name:?}, but {why}");
                let error = at_unit(Error::new(Code::FileName, message));
                error
                    .hint("Write one file instead (layout file).")
                    .add_to(&mut faults);
            }
            if let Some(other) = taken.insert(folded(name), what) {
                let message = format!("its file would be called {name}, which is taken by {other}");
                let error = at_unit(Error::new(Code::NameCollision, message));
                error
                    .hint("Write one file instead (layout file).")
                    .add_to(&mut faults);
            }
        };
        let names = self.file_names();
        take(CONFIG_NAME, "the configuration".to_owned(), None);
        take(&names[0], "the tensors of no unit".to_owned(), None);
        for (name, unit) in names[1..].iter().zip(&self.units) {
            take(name, format!("unit {}", unit.name), Some(&unit.name));
        }
        for (path, _) in &folder.copies {
            take(&file_name(path), "a file of the source".to_owned(), None);
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_name_that_is_taken_is_that_of_a_file_in_the_folder(unit in "\\PC{0,12}|[./\\\\: a-c\n\0]{0,8}|.{190,210}") {
            let name = unit_file(&unit);
            if complaint(&name).is_none() {
                let path = Path::new(&name);
                prop_assert_eq!(path.file_name().map(Path::new), Some(path));
                prop_assert!(path.extension().is_some_and(|ending| ending == "safetensors"));
                prop_assert!(name.len() <= 200 && !name.contains(['/', '\\', ':', '\0']));
                prop_assert!(!name.starts_with(['.', ' ']));
            }
        }
    }
}
