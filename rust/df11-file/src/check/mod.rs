//! `verify`: whether a DF11 file on disk is sound, and holds what it says or what a source holds.
//!
//! Five levels, each with all that the ones before look at: `structure` (sizes, tables, positions; no decoding), `hash` (every byte against the file's own hashes), `sample`
//! (some kernel chunks decoded), `full` (everything decoded, every gap and position rebuilt) and `kernel` (everything decoded once more, by the official kernel on a GPU).

mod against;
mod decode;
mod gpu;
mod report;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use df11_codec::Kernel;

use crate::{
    architectures::Choice,
    error::{Code, Error, Result},
    progress::{Phase, Progress},
    stored::{Stored, hashes, parts::Parts},
    task::Task,
};
use against::Against;
use gpu::FoundGpu;
pub use gpu::GpuOptions;
pub use report::CheckReport;

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Sizes, tables, code lengths, positions.
    Structure,
    /// And every byte, by the hashes that the file carries.
    Hash,
    /// And some kernel chunks, decoded.
    Sample,
    /// And all of them.
    #[default]
    Full,
    /// And the official kernel decodes them on a GPU.
    Kernel,
}

crate::options::named!(Level { Structure = "structure", Hash = "hash", Sample = "sample", Full = "full", Kernel = "kernel" });

/// The choices of one check.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// How much is looked at.
    pub level: Level,
    /// The checkpoint that the file was made from.
    pub against: Option<PathBuf>,
    /// Its architecture, where the file does not tell it.
    pub architecture: Choice,
    /// Folders of architecture files, for [`Self::against`].
    pub definitions: Vec<PathBuf>,
    /// Kernel chunks of the level `sample`, besides the first and last of each unit and those around its members' borders.
    pub samples: u64,
    /// Which they are; none: a new choice each time.
    pub seed: Option<u64>,
    /// Threads; none: all cores.
    pub threads: Option<usize>,
    /// Threads give way to other programs.
    pub low_priority: bool,
    /// The implementation of the hot loops.
    pub kernel: Kernel,
    /// What the level `kernel` works with.
    pub gpu: GpuOptions,
}

/// Starts the check of `path` in a thread of its own.
///
/// # Errors
/// What the file is instead of a DF11 file, and what its header shows to be wrong; `E_OPTION`.
pub fn start(path: &Path, options: CheckOptions) -> Result<Task<CheckReport>> {
    if options.threads == Some(0) {
        return Err(Error::new(Code::Option, "no threads were allowed").hint("Allow at least one."));
    }
    let stored = Stored::open(path)?;
    if options.level == Level::Hash && stored.description.is_none() {
        let message = "the file carries no hashes: it was written with an official header, or by another tool";
        return Err(Error::new(Code::Option, message)
            .hint("Choose another level; full decodes everything.")
            .at_path(path));
    }
    if let Some(description) = &stored.description {
        Parts::new(&stored, description).map_err(|error| error.at_path(path))?;
    }
    let against = options
        .against
        .as_deref()
        .map(|source| Against::open(source, &stored, &options))
        .transpose()?;
    Task::start(options.low_priority, move |progress| {
        let gpu = (options.level == Level::Kernel)
            .then(|| FoundGpu::open(&options.gpu))
            .transpose()?;
        check(&stored, against.as_ref(), gpu.as_ref(), &options, progress)
            .map_err(|error| error.at_path(stored.file.path()))
    })
}

fn check(
    stored: &Stored,
    against: Option<&Against>,
    gpu: Option<&FoundGpu>,
    options: &CheckOptions,
    progress: &Progress,
) -> Result<CheckReport> {
    let started = Instant::now();
    let on_gpu = gpu.map(|gpu| gpu.decoder(&stored.units)).transpose()?;
    let hashed = options.level >= Level::Hash && stored.description.is_some();
    let mut work = decode::Work::new(stored, against, options, progress);
    progress.set_phase(Phase::Reading);
    let runs: Vec<_> = stored
        .units
        .iter()
        .map(|unit| work.chosen(unit))
        .collect::<Result<_>>()?;
    let decoded: u64 = runs.iter().map(|unit| unit.weights * 2).sum();
    let hash_bytes = if hashed {
        stored.file.header().data_bytes
    } else {
        0
    };
    let decoded = if gpu.is_some() { decoded * 2 } else { decoded };
    progress.set_total(
        decoded + hash_bytes + against.map_or(0, Against::passthrough_bytes),
        1,
    );
    progress.set_units(stored.units.len());
    if hashed {
        let tensors = hashes::in_file_order(stored)?;
        hashes::check(&stored.file, &tensors, work.threads, progress)?;
    }
    if let Some(against) = against {
        against.passthrough(stored, progress)?;
    }
    for (index, (unit, chosen)) in stored.units.iter().zip(&runs).enumerate() {
        progress.enter_unit(index);
        work.unit(unit, chosen)?;
        if let Some(on_gpu) = &on_gpu {
            on_gpu.unit(&work, unit, chosen)?;
        }
        progress.unit_done();
    }
    progress.leave_unit();
    progress.set_phase(Phase::Done);
    Ok(CheckReport::new(
        stored,
        options,
        &work,
        hashed,
        gpu.map(FoundGpu::description),
        started.elapsed(),
    ))
}
