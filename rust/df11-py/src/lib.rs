//! The Python module `df11_native`: conversion between Python and `df11-file`, no logic of its own.
//!
//! `df11_native.pyi` is its description for people and type checkers.

#![allow(clippy::needless_pass_by_value)] // Python hands owned values over.

mod error;
mod host;
mod job;
mod jobs;
mod plan;

use pyo3::prelude::*;

/// Number of the module's interface; the node pack refuses another one.
const PROTOCOL: u32 = 3;

/// The `df11` command on `sys.argv`; returns its exit code.
#[pyfunction]
fn main(py: Python<'_>) -> PyResult<u8> {
    let argv: Vec<std::ffi::OsString> = py.import("sys")?.getattr("argv")?.extract()?;
    let host = host::facts(py)?;
    Ok(py.detach(|| df11_cli::run(argv, &host)))
}

/// Native half of DFloat11 Compress.
#[pymodule]
fn df11_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PROTOCOL", PROTOCOL)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(plan::contents, module)?)?;
    module.add_function(wrap_pyfunction!(plan::architectures, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::start, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::verify, module)?)?;
    module.add_function(wrap_pyfunction!(jobs::restore, module)?)?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<job::Snapshot>()?;
    error::add_to(module)
}
