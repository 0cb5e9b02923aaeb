//! Plans, inspection, architectures.

use std::path::PathBuf;

use df11_file::{
    Code, Error, Options, PlanReport, Result,
    architectures::{Choice, Library},
    bench::expect,
    options::{Io, kernel},
};
use pyo3::prelude::*;

use crate::{error::raise, jobs::forced_kernel};

/// What a compression would do, from the header alone.
#[pyclass(frozen)]
pub struct Plan {
    /// Taken when the job starts; a plan is used once.
    inner: std::sync::Mutex<Option<df11_file::Plan>>,
    report: Py<PyAny>,
    #[pyo3(get)]
    source: String,
    #[pyo3(get)]
    target: String,
    #[pyo3(get)]
    architecture: String,
    #[pyo3(get)]
    units: usize,
}

#[pymethods]
impl Plan {
    fn estimate(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let expected = py.detach(|| {
            let plan = self.inner.lock();
            let plan = plan.ok();
            let plan = plan.as_ref().and_then(|plan| plan.as_ref());
            expect(plan.ok_or_else(was_started)?, &|| false)
        });
        let expected = expected.map_err(|error| raise(py, &error))?;
        Ok(pythonize::pythonize(py, &expected)?.unbind())
    }

    fn report(&self, py: Python<'_>) -> Py<PyAny> {
        self.report.clone_ref(py)
    }
}

/// The error for a plan that is used a second time.
pub fn was_started() -> Error {
    Error::new(Code::Option, "the plan was started before").hint("Make a new plan.")
}

impl Plan {
    /// The plan itself, once.
    pub fn take(&self) -> Option<df11_file::Plan> {
        self.inner.lock().ok()?.take()
    }
}

#[pyfunction]
#[pyo3(signature = (
    source, target=None, *, architecture="auto", header="self-describing", verify="full", if_exists="skip", cast="none",
    keep_uncompressed=false, max_memory=None, max_rate=None, threads=None, definitions=None, low_priority=false,
))]
#[allow(clippy::too_many_arguments)]
pub fn plan(
    py: Python<'_>,
    source: PathBuf,
    target: Option<PathBuf>,
    architecture: &str,
    header: &str,
    verify: &str,
    if_exists: &str,
    cast: &str,
    keep_uncompressed: bool,
    max_memory: Option<u64>,
    max_rate: Option<u64>,
    threads: Option<usize>,
    definitions: Option<Vec<PathBuf>>,
    low_priority: bool,
) -> PyResult<Plan> {
    let options = || -> Result<Options> {
        Ok(Options {
            architecture: Choice::from(architecture),
            header: header.parse()?,
            verify: verify.parse()?,
            if_exists: if_exists.parse()?,
            cast: cast.parse()?,
            keep_uncompressed,
            no_resume: false,
            definitions: definitions.unwrap_or_default(),
            max_memory,
            max_rate,
            threads,
            low_priority,
            io: Io::default(),
            kernel: kernel(forced_kernel().as_deref())?,
            ..Options::default()
        })
    };
    let options = options().map_err(|error| raise(py, &error))?;
    let plan = py
        .detach(|| df11_file::plan(&source, target.as_deref(), options))
        .map_err(|error| raise(py, &error))?;
    Ok(Plan {
        report: report(py, &plan)?,
        source: plan.source.path().display().to_string(),
        target: plan.target.display().to_string(),
        architecture: plan.architecture.id.clone(),
        units: plan.units.len(),
        inner: std::sync::Mutex::new(Some(plan)),
    })
}

#[pyfunction]
#[pyo3(signature = (path, *, architecture="auto", definitions=None))]
pub fn inspect(
    py: Python<'_>,
    path: PathBuf,
    architecture: &str,
    definitions: Option<Vec<PathBuf>>,
) -> PyResult<Py<PyAny>> {
    let options = Options {
        architecture: Choice::from(architecture),
        definitions: definitions.unwrap_or_default(),
        ..Options::default()
    };
    let plan = py
        .detach(|| df11_file::plan(&path, None, options))
        .map_err(|error| raise(py, &error))?;
    report(py, &plan)
}

#[pyfunction]
pub fn contents(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let found = py
        .detach(|| df11_file::contents(&path))
        .map_err(|error| raise(py, &error))?;
    Ok(pythonize::pythonize(py, &found)?.unbind())
}

#[pyfunction]
#[pyo3(signature = (definitions=None))]
pub fn architectures(py: Python<'_>, definitions: Option<Vec<PathBuf>>) -> PyResult<Py<PyAny>> {
    let library =
        Library::load(&definitions.unwrap_or_default()).map_err(|error| raise(py, &error))?;
    Ok(pythonize::pythonize(py, &library.summaries())?.unbind())
}

fn report(py: Python<'_>, plan: &df11_file::Plan) -> PyResult<Py<PyAny>> {
    Ok(pythonize::pythonize(py, &PlanReport::new(plan))?.unbind())
}
