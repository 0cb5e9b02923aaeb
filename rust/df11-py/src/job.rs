//! Jobs and their snapshots.

use std::time::Duration;

use df11_file::{Code, Error};
use pyo3::prelude::*;

use crate::{error::raise, plan::Plan};

/// State of a job at one moment.
#[pyclass(frozen, get_all)]
pub struct Snapshot {
    phase: &'static str,
    bytes_in: u64,
    bytes_total: u64,
    bytes_out: u64,
    unit: u64,
    units: usize,
    unit_name: String,
    elapsed: f64,
}

/// A running compression.
#[pyclass(frozen)]
pub struct Job {
    inner: df11_file::Job,
}

#[pymethods]
impl Job {
    fn snapshot(&self, py: Python<'_>) -> Snapshot {
        py.detach(|| {
            let (now, units) = (self.inner.snapshot(), &self.inner.plan().units);
            let name = now
                .unit
                .and_then(|unit| units.get(unit as usize))
                .map(|unit| unit.name.clone());
            Snapshot {
                phase: now.phase.as_str(),
                bytes_in: now.bytes_in,
                bytes_total: now.bytes_total,
                bytes_out: now.bytes_out,
                unit: now.units_done,
                units: units.len(),
                unit_name: name.unwrap_or_default(),
                elapsed: now.elapsed.as_secs_f64(),
            }
        })
    }

    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.inner.cancel());
    }

    #[pyo3(signature = (timeout=None))]
    fn join(&self, py: Python<'_>, timeout: Option<f64>) -> bool {
        // What is no duration, such as a negative or huge number, waits not at all or for ever.
        let timeout = timeout.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
        py.detach(|| match timeout {
            Some(Ok(timeout)) => self.inner.join(Some(timeout)),
            None | Some(Err(_)) => self.inner.join(None),
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let report = py
            .detach(|| self.inner.result())
            .map_err(|error| raise(py, &error))?;
        Ok(pythonize::pythonize(py, &report)?.unbind())
    }
}

/// Starts the plan in threads of its own and returns at once.
#[pyfunction]
pub fn start(py: Python<'_>, plan: &Plan) -> PyResult<Job> {
    let used = || Error::new(Code::Option, "the plan was started before").hint("Make a new plan.");
    let inner = plan
        .take()
        .ok_or_else(used)
        .and_then(|plan| py.detach(|| df11_file::Job::start(plan)));
    Ok(Job {
        inner: inner.map_err(|error| raise(py, &error))?,
    })
}
