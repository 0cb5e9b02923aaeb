//! The functions that start jobs.

use std::path::PathBuf;

use df11_file::{
    architectures::Choice,
    check::{self, CheckOptions},
    options::kernel,
    restore::{RestoreOptions, start as start_restoring},
};
use pyo3::prelude::*;

use crate::{
    error::raise,
    job::Job,
    plan::{Plan, was_started},
};

/// The name of the kernel to use, where one is forced.
pub fn forced_kernel() -> Option<String> {
    std::env::var("DF11_KERNEL").ok()
}

/// Starts the plan in threads of its own and returns at once.
#[pyfunction]
pub fn start(py: Python<'_>, plan: &Plan) -> PyResult<Job> {
    let job = plan
        .take()
        .ok_or_else(was_started)
        .and_then(|plan| py.detach(|| df11_file::Job::start(plan)));
    job.map(Job::compression).map_err(|error| raise(py, &error))
}

#[pyfunction]
#[pyo3(signature = (
    path, *, level="full", against=None, architecture="auto", samples=200, seed=None, threads=None, definitions=None, low_priority=false,
))]
#[allow(clippy::too_many_arguments)]
pub fn verify(
    py: Python<'_>,
    path: PathBuf,
    level: &str,
    against: Option<PathBuf>,
    architecture: &str,
    samples: u64,
    seed: Option<u64>,
    threads: Option<usize>,
    definitions: Option<Vec<PathBuf>>,
    low_priority: bool,
) -> PyResult<Job> {
    Job::start(py, || {
        let options = CheckOptions {
            level: level.parse()?,
            against,
            architecture: Choice::from(architecture),
            definitions: definitions.unwrap_or_default(),
            samples,
            seed,
            threads,
            low_priority,
            kernel: kernel(forced_kernel().as_deref())?,
            ..CheckOptions::default()
        };
        check::start(&path, options)
    })
}

#[pyfunction]
#[pyo3(signature = (
    path, target=None, *, usable=false, architecture="auto", if_exists="skip", threads=None, definitions=None, low_priority=false,
))]
#[allow(clippy::too_many_arguments)]
pub fn restore(
    py: Python<'_>,
    path: PathBuf,
    target: Option<PathBuf>,
    usable: bool,
    architecture: &str,
    if_exists: &str,
    threads: Option<usize>,
    definitions: Option<Vec<PathBuf>>,
    low_priority: bool,
) -> PyResult<Job> {
    Job::start(py, || {
        let options = RestoreOptions {
            usable,
            architecture: Choice::from(architecture),
            definitions: definitions.unwrap_or_default(),
            if_exists: if_exists.parse()?,
            threads,
            low_priority,
            kernel: kernel(forced_kernel().as_deref())?,
        };
        start_restoring(&path, target.as_deref(), options)
    })
}
