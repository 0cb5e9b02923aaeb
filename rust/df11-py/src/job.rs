//! Jobs and their snapshots.

use std::{ops::Deref, time::Duration};

use df11_file::{Result, Task};
use pyo3::prelude::*;
use serde::Serialize;

use crate::error::raise;

/// State of a job at one moment.
#[pyclass(frozen, get_all)]
pub struct Snapshot {
    phase: &'static str,
    bytes_in: u64,
    bytes_total: u64,
    bytes_out: u64,
    unit: u64,
    units: u64,
    unit_name: String,
    elapsed: f64,
}

/// Running work, whatever its report is.
trait Work: Send + Sync {
    fn snapshot(&self) -> df11_file::Snapshot;
    fn cancel(&self);
    fn join(&self, timeout: Option<Duration>) -> bool;
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

impl<T, R> Work for T
where
    T: Deref<Target = Task<R>> + Send + Sync,
    R: Clone + Serialize + Send + 'static,
{
    fn snapshot(&self) -> df11_file::Snapshot {
        (**self).snapshot()
    }

    fn cancel(&self) {
        (**self).cancel();
    }

    fn join(&self, timeout: Option<Duration>) -> bool {
        (**self).join(timeout)
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let report = py
            .detach(|| (**self).result())
            .map_err(|error| raise(py, &error))?;
        Ok(pythonize::pythonize(py, &report)?.unbind())
    }
}

/// A running job.
#[pyclass(frozen)]
pub struct Job {
    work: Box<dyn Work>,
    /// Names of its units by their index, where they are known.
    units: Vec<String>,
}

impl Job {
    /// The compression, whose plan knows its units.
    pub fn compression(job: df11_file::Job) -> Self {
        let units = job.plan().units.iter();
        Self {
            units: units.map(|unit| unit.name.clone()).collect(),
            work: Box::new(job),
        }
    }

    /// Starts other work.
    pub fn start<R: Clone + Serialize + Send + 'static>(
        py: Python<'_>,
        start: impl FnOnce() -> Result<Task<R>> + Send,
    ) -> PyResult<Self> {
        let task = py.detach(start).map_err(|error| raise(py, &error))?;
        Ok(Self {
            work: Box::new(Box::new(task)),
            units: Vec::new(),
        })
    }
}

#[pymethods]
impl Job {
    fn snapshot(&self, py: Python<'_>) -> Snapshot {
        py.detach(|| {
            let now = self.work.snapshot();
            let name = now.unit.and_then(|unit| self.units.get(unit as usize));
            Snapshot {
                phase: now.phase.as_str(),
                bytes_in: now.bytes_in,
                bytes_total: now.bytes_total,
                bytes_out: now.bytes_out,
                unit: now.units_done,
                units: now.units,
                unit_name: name.cloned().unwrap_or_default(),
                elapsed: now.elapsed.as_secs_f64(),
            }
        })
    }

    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.work.cancel());
    }

    #[pyo3(signature = (timeout=None))]
    fn join(&self, py: Python<'_>, timeout: Option<f64>) -> bool {
        // What is no duration, such as a negative or huge number, waits not at all or for ever.
        let timeout = timeout.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
        py.detach(|| match timeout {
            Some(Ok(timeout)) => self.work.join(Some(timeout)),
            None | Some(Err(_)) => self.work.join(None),
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.work.result(py)
    }
}
