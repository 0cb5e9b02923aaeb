//! What Python has to tell about itself, for `df11 env`.

use pyo3::prelude::*;

/// Packages whose versions a fault report needs.
const PACKAGES: [&str; 6] = [
    "dfloat11-compress",
    "dfloat11",
    "cupy-cuda12x",
    "torch",
    "safetensors",
    "comfyui-frontend-package",
];

/// Names and values; a package that is not installed is left out.
pub fn facts(py: Python<'_>) -> PyResult<Vec<(String, String)>> {
    let sys = py.import("sys")?;
    let own = py.import("df11_native")?;
    // Two lines in older versions.
    let python = sys.getattr("version")?.to_string().replace('\n', "");
    let mut facts = vec![
        ("Python".to_owned(), python),
        (
            "interpreter".to_owned(),
            sys.getattr("executable")?.to_string(),
        ),
        (
            "df11_native".to_owned(),
            own.getattr("__file__")?.to_string(),
        ),
        ("interface".to_owned(), crate::PROTOCOL.to_string()),
    ];
    let version = py.import("importlib.metadata")?.getattr("version")?;
    for package in PACKAGES {
        if let Ok(found) = version.call1((package,)) {
            facts.push((package.to_owned(), found.to_string()));
        }
    }
    Ok(facts)
}
