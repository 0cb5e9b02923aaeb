//! Errors of the library as typed exceptions with their code and place.

use df11_file::{Class, Error};
use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(
    df11_native,
    Df11Error,
    PyException,
    "A refusal or failure with a stable code."
);
create_exception!(
    df11_native,
    RefusedError,
    Df11Error,
    "The input is not taken, and nothing was left."
);
create_exception!(
    df11_native,
    VerificationError,
    Df11Error,
    "A file does not hold what it should. One that was being written was not committed."
);
create_exception!(
    df11_native,
    SpaceError,
    Df11Error,
    "Not enough disk space or memory."
);
create_exception!(
    df11_native,
    TargetExistsError,
    Df11Error,
    "The target exists and is not this result, or is being written."
);
create_exception!(
    df11_native,
    CancelledError,
    Df11Error,
    "The job was cancelled; nothing was left."
);

/// Adds the exceptions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Df11Error", py.get_type::<Df11Error>())?;
    module.add("RefusedError", py.get_type::<RefusedError>())?;
    module.add("VerificationError", py.get_type::<VerificationError>())?;
    module.add("SpaceError", py.get_type::<SpaceError>())?;
    module.add("TargetExistsError", py.get_type::<TargetExistsError>())?;
    module.add("CancelledError", py.get_type::<CancelledError>())
}

/// The exception for an error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    let exception = match error.code.class() {
        Class::Refused => RefusedError::new_err(text),
        Class::Mismatch => VerificationError::new_err(text),
        Class::Space => SpaceError::new_err(text),
        Class::TargetExists => TargetExistsError::new_err(text),
        Class::Cancelled => CancelledError::new_err(text),
        Class::Usage | Class::Io | Class::Internal => Df11Error::new_err(text),
    };
    let value = exception.value(py);
    let path = error.path.as_ref().map(|path| path.display().to_string());
    let attributes = value
        .setattr("code", error.code.as_str())
        .and_then(|()| value.setattr("hint", &error.hint))
        .and_then(|()| value.setattr("path", path))
        .and_then(|()| value.setattr("unit", error.unit.as_deref()))
        .and_then(|()| value.setattr("tensor", error.tensor.as_deref()))
        .and_then(|()| value.setattr("index", error.index));
    attributes.err().unwrap_or(exception)
}
