//! The known architectures: built in, from the pack's folder, from the user's folder. Later ones replace earlier ones of the same id.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{
    definition::{Architecture, Loader},
    detect::{Names, strip_prefix},
    layout::{Config, Layout},
};
use crate::{
    error::{Code, Error, Result},
    header::Header,
};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Whatever the tensor names show.
    #[default]
    Auto,
    /// The architecture of this id.
    Id(String),
}

impl From<&str> for Choice {
    fn from(text: &str) -> Self {
        if text == "auto" {
            Self::Auto
        } else {
            Self::Id(text.to_owned())
        }
    }
}

/// An architecture in a list.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its name for people.
    pub name: &'a str,
    /// How models of it are stored.
    pub layout: Layout,
    /// The architecture that it is a choice for.
    pub variant_of: Option<&'a str>,
    /// False where it is recognised but refused.
    pub supported: bool,
    /// Why it is refused.
    pub reason: Option<&'a str>,
    /// The loader node that takes the result.
    pub loader: Option<&'a Loader>,
    /// The file that it came from.
    pub origin: &'a str,
}

impl<'a> Summary<'a> {
    fn of(known: &'a Architecture) -> Self {
        Self {
            id: &known.id,
            name: &known.name,
            layout: known.layout,
            variant_of: known.variant_of.as_deref(),
            supported: known.refused.is_none(),
            reason: known
                .refused
                .as_ref()
                .map(|refused| refused.reason.as_str()),
            loader: known.loader.as_ref(),
            origin: &known.origin,
        }
    }
}

/// Which architectures are asked about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Those in ComfyUI's layout.
    Comfyui,
    /// Those in the other layouts.
    Others,
}

impl Asked {
    fn covers(self, layout: Layout) -> bool {
        (self == Self::Comfyui) == (layout == Layout::Comfyui)
    }

    /// The prefix that is stripped from a source's names.
    pub fn prefix(self, header: &Header) -> &'static str {
        match self {
            Self::Comfyui => strip_prefix(header),
            Self::Others => "",
        }
    }
}

/// All known architectures.
#[derive(Debug)]
pub struct Library {
    architectures: Vec<Arc<Architecture>>,
}

impl Library {
    /// The built-in architectures and those of `folders`, of which later ones win.
    ///
    /// # Errors
    /// `E_DEFINITION` for a faulty file, `E_READ` for one that cannot be read; the first with the others attached.
    pub fn load(folders: &[PathBuf]) -> Result<Self> {
        let mut library = Self {
            architectures: Vec::new(),
        };
        let mut faults = Vec::new();
        let built_in = EMBEDDED
            .iter()
            .map(|(name, text)| Architecture::parse(text, &format!("built-in {name}")));
        library.add_all(built_in.collect(), &mut faults);
        for folder in folders {
            library.add_all(read_folder(folder), &mut faults);
        }
        let lost = library
            .iter()
            .filter_map(|known| library.lost_variant(known));
        faults.extend(lost);
        Error::collect(faults).map_or(Ok(library), Err)
    }

    /// Adds the files of one place, in which an id stands once: nothing says which of two would count.
    fn add_all(&mut self, files: Vec<Result<Architecture>>, faults: &mut Vec<Error>) {
        let mut origins = HashMap::new();
        for file in files {
            let architecture = match file {
                Ok(architecture) => architecture,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            let (id, origin) = (architecture.id.clone(), architecture.origin.clone());
            if let Some(other) = origins.insert(id.clone(), origin.clone()) {
                let message = format!("the architecture file has the same id as {other}: {id}");
                faults.push(
                    Error::new(Code::Definition, message)
                        .hint("Remove one of the two, or give it another id.")
                        .at_path(Path::new(&origin)),
                );
            }
            self.add(architecture);
        }
    }

    /// The fault of a variant of an architecture that nothing detects.
    fn lost_variant(&self, known: &Architecture) -> Option<Error> {
        let of = known.variant_of.as_ref()?;
        if self
            .iter()
            .any(|other| other.id == *of && other.detect.is_some())
        {
            return None;
        }
        let message = format!(
            "the architecture file is faulty: variant_of names {of}, which nothing detects"
        );
        Some(
            Error::new(Code::Definition, message)
                .hint("Name the id of an architecture that has [detect].")
                .at_path(Path::new(&known.origin)),
        )
    }

    fn add(&mut self, architecture: Architecture) {
        let architecture = Arc::new(architecture);
        match self
            .architectures
            .iter_mut()
            .find(|known| known.id == architecture.id)
        {
            Some(known) => *known = architecture,
            None => self.architectures.push(architecture),
        }
    }

    /// All architectures, for a list.
    pub fn summaries(&self) -> Vec<Summary<'_>> {
        self.iter().map(|known| Summary::of(known)).collect()
    }

    /// All architectures.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Architecture>> {
        self.architectures.iter()
    }

    /// Which architectures are asked about a source: those in ComfyUI's layout where it is a file of its own (`config` is none) and the choice is none of
    /// another layout, the others where it has a config.json.
    pub fn asked(&self, config: Option<&Config>, choice: &Choice) -> Asked {
        let chosen = match choice {
            Choice::Auto => None,
            Choice::Id(id) => self.iter().find(|known| known.id == *id),
        };
        let elsewhere = chosen.is_some_and(|chosen| chosen.layout != Layout::Comfyui);
        if config.is_some() || elsewhere {
            Asked::Others
        } else {
            Asked::Comfyui
        }
    }

    /// The architecture of a model with these names. A choice must agree with what the names show.
    ///
    /// # Errors
    /// `E_ARCH_UNKNOWN`, `E_ARCH_AMBIGUOUS`, `E_ARCH_CONTRADICTION`, or `E_ARCH_REFUSED` with the reason.
    pub fn find(
        &self,
        names: &Names<'_>,
        asked: Asked,
        choice: &Choice,
    ) -> Result<Arc<Architecture>> {
        let known = || self.iter().filter(|known| asked.covers(known.layout));
        let matches = |known: &&Arc<Architecture>| {
            let detect = known.detect.as_ref();
            detect.is_some_and(|detect| detect.matches(names))
        };
        let found: Vec<_> = known().filter(matches).collect();
        if found.is_empty() {
            return Err(self.unknown(|known| {
                let detect = known.detect.as_ref();
                let detect = detect.filter(|_| asked.covers(known.layout));
                Some(detect?.likeness(names))
            }));
        }
        if let [only] = found[..]
            && let Some(refused) = &only.refused
        {
            let message = format!("this is {}: {}", only.name, refused.reason);
            return Err(Error::new(Code::ArchRefused, message).hint(refused.remedy.clone()));
        }
        let Choice::Id(id) = choice else {
            return match found[..] {
                [one] => Ok(one.clone()),
                [..] => Err(ambiguous(&found)),
            };
        };
        // What only a config.json tells may be left to the choice, and nothing else.
        let is_open = asked == Asked::Others && !names.have_config();
        if found.len() > 1 && !is_open {
            return Err(ambiguous(&found));
        }
        let chosen = self.chosen(id)?;
        if found.iter().any(|found| chosen.is_choice_for(found)) {
            return Ok(chosen);
        }
        Err(contradiction(id, found[0]))
    }

    /// The architecture of an id that the user gave.
    ///
    /// # Errors
    /// `E_OPTION`.
    pub fn chosen(&self, id: &str) -> Result<Arc<Architecture>> {
        if let Some(chosen) = self.iter().find(|known| known.id == id) {
            return Ok(chosen.clone());
        }
        let ids: Vec<_> = self
            .iter()
            .filter(|known| known.refused.is_none())
            .map(|known| known.id.as_str())
            .collect();
        Err(
            Error::new(Code::Option, format!("there is no architecture {id}"))
                .hint(format!("Known: {}.", ids.join(", "))),
        )
    }

    /// The refusal of a model that is no known one, with those that are most like it: `likeness` is 0 to 1.
    pub fn unknown(&self, likeness: impl Fn(&Architecture) -> Option<f64>) -> Error {
        let mut near: Vec<_> = self
            .iter()
            .filter_map(|known| Some((likeness(known)?, known)))
            .collect();
        near.retain(|(likeness, _)| *likeness > 0.0);
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let nearest: Vec<_> = near
            .iter()
            .take(3)
            .map(|(_, known)| format!("{} ({})", known.id, known.name))
            .collect();
        let nearest = if nearest.is_empty() {
            "no known one is similar".to_owned()
        } else {
            format!("nearest: {}", nearest.join(", "))
        };
        Error::new(
            Code::ArchUnknown,
            format!("the tensor names belong to no known architecture; {nearest}"),
        )
        .hint("DF11 files need a loader that knows the model; an architecture file can add one.")
    }
}

/// The refusal of a model that several architectures match.
pub fn ambiguous(found: &[&Arc<Architecture>]) -> Error {
    let list: Vec<_> = found
        .iter()
        .map(|known| format!("{} ({})", known.id, known.origin))
        .collect();
    let message = format!("more than one architecture matches: {}", list.join(", "));
    Error::new(Code::ArchAmbiguous, message)
        .hint("Remove or correct the architecture file that should not match.")
}

/// The refusal of a choice where the tensors show another architecture.
pub fn contradiction(id: &str, detected: &Architecture) -> Error {
    let message = format!(
        "architecture {id} was chosen, but the tensors are those of {} ({})",
        detected.id, detected.name
    );
    Error::new(Code::ArchContradiction, message).hint("Choose auto.")
}

/// The architecture files of a folder, by name.
fn read_folder(folder: &Path) -> Vec<Result<Architecture>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten(),
        Err(error) => return vec![Err(Error::read(folder, &error))],
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
            && path.is_file()
    });
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| Error::read(path, &error))?;
        Architecture::parse(&text, &path.display().to_string())
    };
    paths.iter().map(read).collect()
}
