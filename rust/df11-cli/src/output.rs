//! Writing results and errors. A closed pipe ends output, not the program.

use std::{
    io::{self, ErrorKind, Write},
    sync::Mutex,
};

use df11_file::{Code, Error, architectures::Loader, error::printable};
use serde_json::{Value, json};

use crate::exit;

/// Why results could not be written, where they could not.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Text on standard output, as it is.
pub fn text(text: &str) {
    remember(io::stdout().write_all(text.as_bytes()));
}

fn remember(written: io::Result<()>) {
    let is_loss = |error: &io::Error| error.kind() != ErrorKind::BrokenPipe;
    if let (Some(error), Ok(mut lost)) = (written.err().filter(is_loss), LOST.lock()) {
        lost.get_or_insert(error);
    }
}

/// The exit code of a run that is over: `code`, or that of results that could not be written.
pub fn finish(code: u8) -> u8 {
    remember(io::stdout().flush());
    let lost = LOST.lock().ok().and_then(|mut lost| lost.take());
    let Some(lost) = lost.filter(|_| code == exit::DONE) else {
        return code;
    };
    let message = format!("the result cannot be written to standard output: {lost}");
    error(&Error::new(Code::Write, message), Format::Text);
    exit::FAILED
}

/// A line of data on standard output. Names in it come from files, so control characters are escaped.
pub fn line(line: &str) {
    text(&format!("{}\n", printable(line)));
}

/// A line of information on standard error.
pub fn message(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// JSON objects, one a line; the last is the result.
    JsonLines,
}

impl Format {
    /// By the options `--json` and `--json-lines`.
    pub fn of(json: bool, json_lines: bool) -> Self {
        match (json, json_lines) {
            (_, true) => Self::JsonLines,
            (true, false) => Self::Json,
            (false, false) => Self::Text,
        }
    }

    /// Whether it is for programs.
    pub fn is_json(self) -> bool {
        self != Self::Text
    }

    /// Prints a result: as an object for programs, and as `text` prints it for people.
    pub fn show<T: serde::Serialize>(self, value: &T, text: impl FnOnce(&T)) {
        if self.is_json() {
            self.json(value);
        } else {
            text(value);
        }
    }

    /// A JSON object on standard output.
    pub fn json(self, value: &impl serde::Serialize) {
        let json = match self {
            Self::JsonLines => serde_json::to_string(value),
            Self::Json | Self::Text => serde_json::to_string_pretty(value),
        };
        text(&format!("{}\n", json.unwrap_or_default()));
    }
}

/// An error: a sentence on standard error, and for programs an object on standard output.
pub fn error(error: &Error, format: Format) {
    if format.is_json() {
        format.json(&json!({ "schema": "df11.error/1", "error": object(error) }));
    }
    message(&format!("df11: {error} [{}]", error.code.as_str()));
}

fn object(error: &Error) -> Value {
    json!({
        "code": error.code.as_str(),
        "message": error.message,
        "hint": error.hint,
        "path": error.path.as_ref().map(|path| path.display().to_string()),
        "unit": error.unit,
        "tensor": error.tensor,
        "index": error.index,
        "also": error.also.iter().map(object).collect::<Vec<_>>(),
    })
}

/// What loads the result, behind a label.
pub fn loader(label: &str, loader: Option<&Loader>) {
    if let Some(Loader {
        node,
        pack,
        url,
        note,
        ..
    }) = loader
    {
        line(&format!("  {label} {node} of {pack} ({url}) {note}"));
    }
}

/// Notes, each behind a label.
pub fn notes(label: &str, notes: &[String]) {
    for note in notes {
        line(&format!("  {label} {note}"));
    }
}

/// Bytes for people.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.2} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
