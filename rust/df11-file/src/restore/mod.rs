//! `restore`: from a self-describing DF11 file the very file that it was made from; from any other one of a known architecture, or where that is asked for, a
//! checkpoint of the model with the names that its loader knows the tensors by.
//!
//! Before the first write it is known where every byte comes from (`outline`): what a file says of its source is proven to cover it once (`stored/parts.rs`),
//! and of other files every shape must follow from other tensors (`stored/model.rs`). Every tensor is read back as it lies in the restored file before that
//! gets its name (`write`).

mod existing;
mod name;
mod outline;
mod report;
mod write;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use df11_codec::Kernel;

use crate::{
    architectures::{Architecture, Choice, Library},
    error::{Code, Error, Result},
    options::{Form, IfExists},
    output::{Output, kept_aside},
    plan::{choose_target, is_taken, target_exists},
    progress::{Phase, Progress},
    report::Status,
    stored::{
        Stored,
        description::Description,
        model::{Model, Weight},
        parts::Parts,
    },
    system,
    task::Task,
};
pub(crate) use name::beside;
use outline::Outline;
pub use report::{RestorePlanReport, RestoreReport};

/// The choices of one restoration.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Existing targets.
    pub if_exists: IfExists,
    /// A checkpoint of what the file holds, under the names that its loader knows, also where the file could be made into its source again.
    pub usable: bool,
    /// The architecture, where the file does not describe itself.
    pub architecture: Choice,
    /// Folders of architecture files; later ones win.
    pub definitions: Vec<PathBuf>,
    /// Threads; none: all cores.
    pub threads: Option<usize>,
    /// Threads give way to other programs.
    pub low_priority: bool,
    /// The implementation of the hot loops.
    pub kernel: Kernel,
}

/// What a file can be made into.
enum Kind {
    /// The source, byte for byte.
    Source {
        /// A folder: its files of tensors, their index, and its configuration.
        is_folder: bool,
    },
    /// A checkpoint of the model, by the file's own description.
    Described {
        /// Source tensors that are no part of the model, and their bytes.
        left_out: (u64, u64),
    },
    /// A checkpoint of the model, by its architecture. False where only the user's choice says which it is.
    Recognised(Arc<Architecture>, bool),
}

/// A restoration, ready to start.
pub struct Restoration {
    stored: Stored,
    kind: Kind,
    outline: Outline,
    target: PathBuf,
    options: RestoreOptions,
    threads: usize,
}

/// What a restoration of `path` would do; as [`start`].
///
/// # Errors
/// Those of [`start`].
pub fn plan(
    path: &Path,
    target: Option<&Path>,
    options: RestoreOptions,
) -> Result<RestorePlanReport> {
    Restoration::new(path, target, options).map(|restoration| RestorePlanReport::new(&restoration))
}

/// Starts the restoration of `path` in a thread of its own. Without a `target` the file gets its source's name, or `NAME-restored.safetensors`, beside `path`.
///
/// # Errors
/// What the file is instead of a DF11 file, and what its header shows to be wrong; `E_NOT_RESTORABLE` where it does not hold all of its source, or a shape is
/// not known; `E_NAME_COLLISION`; those of the architecture, where the file does not describe itself; those of the target's name; `E_OPTION`.
pub fn start(
    path: &Path,
    target: Option<&Path>,
    options: RestoreOptions,
) -> Result<Task<RestoreReport>> {
    Restoration::new(path, target, options)?.start()
}

impl Restoration {
    /// Reads what the file's header says; writes nothing.
    ///
    /// # Errors
    /// Those of [`start`].
    pub fn new(path: &Path, target: Option<&Path>, options: RestoreOptions) -> Result<Self> {
        if options.threads == Some(0) {
            return Err(
                Error::new(Code::Option, "no threads were allowed").hint("Allow at least one.")
            );
        }
        let mut stored = Stored::open(path)?;
        let description = stored.description.take();
        // A checkpoint is not its source: it gets another name.
        let told = description.as_ref().filter(|_| !options.usable);
        let name = told.and_then(|told| told.source_name.as_deref());
        let form = match told {
            Some(told) if !told.files.is_empty() => Form::Folder,
            _ => Form::File,
        };
        let beside = beside(path, name, form);
        let (kind, outline) = match description {
            Some(description) => from_description(&stored, description, options.usable),
            None => from_architecture(&stored, &options),
        }
        .map_err(|error| error.all_at_path(path))?;
        let target = choose_target(
            path,
            Some(target.unwrap_or(&beside)),
            (form, options.if_exists),
        )?;
        Ok(Self {
            stored,
            kind,
            outline,
            target,
            threads: system::threads(options.threads),
            options,
        })
    }

    /// Starts it in a thread of its own.
    ///
    /// # Errors
    /// `E_NO_MEMORY` where no thread can be started.
    pub fn start(self) -> Result<Task<RestoreReport>> {
        Task::start(self.options.low_priority, move |progress| {
            let outcome = self.run(progress);
            outcome.map_err(|error| error.at_path(self.stored.file.path()))
        })
    }

    fn run(&self, progress: &Progress) -> Result<RestoreReport> {
        let started = Instant::now();
        progress.set_total(self.outline.header.data_bytes, 1);
        let report = |status, left| RestoreReport::new(self, status, left, started.elapsed());
        let replace = self.options.if_exists == IfExists::Replace;
        Output::tidy(&self.target);
        if is_taken(&self.target) && !replace {
            if self.options.if_exists == IfExists::Skip && existing::is_result(self, progress)? {
                progress.set_phase(Phase::Done);
                return Ok(report(Status::AlreadyDone, false));
            }
            return Err(target_exists(&self.target));
        }
        progress.set_units(self.outline.parts.units.len());
        progress.set_phase(Phase::Reading);
        write::check_units(self, progress)?;
        let (mut file, left) = Output::create(&self.target, self.outline.names())?;
        progress.on_abandon(file.remover()?);
        file.check_space(self.outline.bytes())?;
        let outcome = write::write(self, &file, progress);
        // A changed file explains any failure better.
        if outcome
            .as_ref()
            .is_err_and(|error| error.code != Code::Cancelled)
        {
            self.stored.file.check_unchanged()?;
        }
        outcome?;
        let kept = file.commit(replace, progress)?;
        progress.set_phase(Phase::Done);
        let mut report = report(Status::Done, left);
        report.notes.extend(kept.as_deref().map(kept_aside));
        Ok(report)
    }
}

fn from_description(
    stored: &Stored,
    description: Description,
    usable: bool,
) -> Result<(Kind, Outline)> {
    let parts = Parts::new(stored, &description)?;
    if usable {
        let kept = parts.kept.iter().map(|(tensor, _)| tensor);
        let dropped = kept.chain(&parts.missing);
        let bytes = dropped.map(|&tensor| description.header.tensors[tensor].bytes());
        let left_out = (description.names.dropped.len() as u64, bytes.sum());
        let weights = described_weights(stored, &description);
        let outline = Outline::checkpoint(stored, &weights)?;
        return Ok((Kind::Described { left_out }, outline));
    }
    parts.require_all(&description)?;
    let is_folder = !description.files.is_empty();
    let outline = Outline::source(description, parts)?;
    Ok((Kind::Source { is_folder }, outline))
}

fn from_architecture(stored: &Stored, options: &RestoreOptions) -> Result<(Kind, Outline)> {
    let library = Library::load(&options.definitions)?;
    let model = Model::find(stored, &library, &options.architecture)?;
    let outline = Outline::checkpoint(stored, &model.units)?;
    Ok((
        Kind::Recognised(model.architecture, model.is_shown),
        outline,
    ))
}

/// The compressed weights by what the file says of its source; [`Parts::new`] has proven it.
fn described_weights(stored: &Stored, description: &Description) -> Vec<Vec<Weight>> {
    let tensors = description.header.tensors.iter();
    let tensors: HashMap<_, _> = tensors.map(|tensor| (&tensor.name, tensor)).collect();
    let units = description.names.units.iter();
    let units: HashMap<_, _> = units.map(|(name, members)| (name, members)).collect();
    let weight = |(name, source): &(String, String)| {
        let tensor = tensors.get(source)?;
        Some(Weight {
            name: name.clone(),
            weights: tensor.elements(),
            shape: tensor.shape.clone(),
        })
    };
    let members = |name: &String| units.get(name).copied().into_iter().flatten();
    stored
        .units
        .iter()
        .map(|unit| members(&unit.name).filter_map(weight).collect())
        .collect()
}
