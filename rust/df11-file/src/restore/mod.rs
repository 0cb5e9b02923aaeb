//! `restore`: from a self-describing DF11 file the very file that it was made from.
//!
//! What the file says of its source is proven before the first write to cover every byte of it once (`stored/parts.rs`), and every tensor is hashed as it
//! lies in the restored file before that gets its name (`write`).

mod existing;
mod name;
mod report;
mod write;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use df11_codec::Kernel;

use crate::{
    error::{Code, Error, Result},
    options::IfExists,
    output::PartialFile,
    plan::{choose_target, target_exists},
    progress::{Phase, Progress},
    report::Status,
    stored::{Stored, description::Description, parts::Parts},
    system,
    task::Task,
};
pub(crate) use name::beside;
pub use report::RestoreReport;

/// The choices of one restoration.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Existing targets.
    pub if_exists: IfExists,
    /// Threads; none: all cores.
    pub threads: Option<usize>,
    /// Threads give way to other programs.
    pub low_priority: bool,
    /// The implementation of the hot loops.
    pub kernel: Kernel,
}

/// A restoration, ready to start.
struct Restoration {
    stored: Stored,
    description: Description,
    parts: Parts,
    target: PathBuf,
    options: RestoreOptions,
    threads: usize,
}

/// Starts the restoration of `path` in a thread of its own. Without a `target` the file gets its source's name, beside `path`.
///
/// # Errors
/// What the file is instead of a DF11 file, and what its header shows to be wrong; `E_NOT_RESTORABLE` where it does not hold all of its source; those of
/// the target's name; `E_OPTION`.
pub fn start(
    path: &Path,
    target: Option<&Path>,
    options: RestoreOptions,
) -> Result<Task<RestoreReport>> {
    if options.threads == Some(0) {
        return Err(Error::new(Code::Option, "no threads were allowed").hint("Allow at least one."));
    }
    let mut stored = Stored::open(path)?;
    let Some(description) = stored.description.take() else {
        let message = "the file does not say what it was made from: it was written with an official header, or by another tool";
        return Err(Error::new(Code::NotRestorable, message)
            .hint(
                "Only files that were compressed with the self-describing header can be restored.",
            )
            .at_path(path));
    };
    let parts = Parts::new(&stored, &description)
        .and_then(|parts| parts.require_all(&description).map(|()| parts))
        .map_err(|error| error.at_path(path))?;
    let target = match target {
        Some(target) => target.to_path_buf(),
        None => beside(path, description.source_name.as_deref()),
    };
    let target = choose_target(path, Some(&target), options.if_exists)?;
    let restoration = Restoration {
        stored,
        description,
        parts,
        target,
        threads: system::threads(options.threads),
        options,
    };
    Task::start(restoration.options.low_priority, move |progress| {
        let outcome = restoration.run(progress);
        outcome.map_err(|error| error.at_path(restoration.stored.file.path()))
    })
}

impl Restoration {
    fn run(&self, progress: &Progress) -> Result<RestoreReport> {
        let started = Instant::now();
        progress.set_total(self.description.header.data_bytes, 1);
        let replace = self.options.if_exists == IfExists::Replace;
        if self.target.exists() && !replace {
            if self.options.if_exists == IfExists::Skip && existing::is_result(self, progress)? {
                progress.set_phase(Phase::Done);
                return Ok(RestoreReport::new(
                    self,
                    Status::AlreadyDone,
                    false,
                    started.elapsed(),
                ));
            }
            return Err(target_exists(&self.target));
        }
        progress.set_units(self.parts.units.len());
        progress.set_phase(Phase::Reading);
        write::check_units(self, progress)?;
        let (file, left) = PartialFile::create(&self.target)?;
        file.check_space(self.description.stamp.source.bytes)?;
        let outcome = write::write(self, &file, progress);
        // A changed file explains any failure better.
        if outcome
            .as_ref()
            .is_err_and(|error| error.code != Code::Cancelled)
        {
            self.stored.file.check_unchanged()?;
        }
        outcome?;
        progress.check_cancelled()?;
        file.commit(replace)?;
        progress.set_phase(Phase::Done);
        Ok(RestoreReport::new(
            self,
            Status::Done,
            left,
            started.elapsed(),
        ))
    }
}
