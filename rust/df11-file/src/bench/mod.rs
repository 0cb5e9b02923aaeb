//! What this machine, a disk and a model let expect: rates measured in a few seconds, and an estimate made from them.

mod disk;
mod estimate;
mod expect;
mod memory;
mod weights;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::{
    budget::Budget,
    error::Result,
    options::Options,
    plan::{Plan, folder_of, plan},
    report::text,
};
use disk::Scratch;

pub use disk::Transfer;
pub use estimate::{Estimate, Limit, TimeRange};
pub use expect::{Expectation, expect};
pub use memory::{MemoryRates, measure};
pub use weights::synthetic;

/// Asked often; true ends a measurement.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// How much is measured.
struct Effort {
    /// Weights of the unit in memory.
    weights: usize,
    /// Time of one rate in memory.
    each: Duration,
    /// Most bytes written, and most bytes read.
    bytes: u64,
}

/// More weights than caches hold, more bytes than a disk's own memory.
const FULL: Effort = Effort {
    weights: 32 << 20,
    each: Duration::from_millis(600),
    bytes: 1 << 30,
};
/// Enough to see that it works.
const QUICK: Effort = Effort {
    weights: 1 << 20,
    each: Duration::from_millis(10),
    bytes: 32 << 20,
};

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The model to estimate for.
    pub source: Option<PathBuf>,
    /// Where its result would go; none: where the model lies, or the current folder.
    pub folder: Option<PathBuf>,
    /// How it would be compressed.
    pub options: Options,
    /// Measures so little that the rates mean nothing; for tests.
    pub quick: bool,
}

/// Rates, and the estimate where there is a model (schema `df11.bench/1`).
#[derive(Debug, Serialize)]
pub struct BenchReport {
    schema: &'static str,
    /// The version of the program.
    pub tool: &'static str,
    /// The implementation of the hot loops.
    pub kernel: &'static str,
    /// Worker threads that a compression would use.
    pub threads: usize,
    /// Rates in memory: with one thread, and where there are more with all.
    pub memory: Vec<MemoryRates>,
    /// The folder that was written to.
    pub folder: String,
    /// Writing there, flushed.
    pub write: Transfer,
    /// Reading: the model, or what was written.
    pub read: Transfer,
    /// What a model needs.
    pub estimate: Option<Estimate>,
}

/// Measures for about ten seconds.
///
/// # Errors
/// Those of planning, where there is a model; `E_NO_SPACE`, `E_WRITE`, `E_READ` of the disk; `E_OPTION`; `E_CANCELLED`.
pub fn bench(request: &Request, stop: Stop<'_>) -> Result<BenchReport> {
    let options = &request.options;
    let source = request.source.as_deref();
    let plan = source
        .map(|source| plan(source, None, options.clone()))
        .transpose()?;
    let units = plan.iter().flat_map(|plan| &plan.units);
    let largest = units.map(|unit| unit.weights).max().unwrap_or(0);
    let plan_bytes = plan.as_ref().map_or(0, Plan::memory);
    let budget = Budget::for_plan(options, largest, plan_bytes)?;
    let folder = request.folder.clone();
    let folder = folder.unwrap_or_else(|| source.map_or_else(|| Path::new(".").into(), folder_of));
    let effort = if request.quick { QUICK } else { FULL };
    let scratch = Scratch::create(&folder, effort.bytes)?;

    let weights = synthetic(effort.weights);
    let write = scratch.write(&weights, stop)?;
    let read = match &plan {
        Some(plan) => disk::read_source(&plan.source, effort.bytes, stop)?,
        None => scratch.read(write.bytes, stop)?,
    };
    drop(scratch);
    let rates = |threads| {
        measure(
            options.kernel,
            threads,
            (&weights, weights.len() / 2),
            effort.each,
            stop,
        )
    };
    let mut memory = vec![rates(1)?];
    if budget.threads > 1 {
        memory.push(rates(budget.threads)?);
    }
    let estimate = plan
        .as_ref()
        .zip(memory.last())
        .map(|(plan, rates)| Estimate::new(plan, &budget, rates, &read, &write));
    Ok(BenchReport {
        schema: "df11.bench/1",
        tool: env!("CARGO_PKG_VERSION"),
        kernel: options.kernel.name(),
        threads: budget.threads,
        memory,
        folder: text(&folder),
        write,
        read,
        estimate,
    })
}
