//! The one progress bar: by source bytes, with unit, rate and time left. Off a terminal, a line every ten seconds; for programs an object
//! every second, or nothing.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use df11_file::Snapshot;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::output::{self, Format};

const LINE_EVERY: Duration = Duration::from_secs(10);
const OBJECT_EVERY: Duration = Duration::from_secs(1);

/// Shows snapshots.
pub struct Display {
    bar: Option<ProgressBar>,
    last_line: Instant,
    format: Format,
}

impl Display {
    /// A display that has shown nothing yet.
    pub fn new(format: Format) -> Self {
        let style = "{bar:30} {percent:>3} %  {decimal_bytes_per_sec}  {eta} left  {msg}";
        let style =
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        let shown = format == Format::Text && std::io::stderr().is_terminal();
        let bar = shown.then(|| ProgressBar::new(0).with_style(style));
        Self {
            bar,
            last_line: Instant::now(),
            format,
        }
    }

    /// Shows the state of the work.
    pub fn show(&mut self, now: &Snapshot, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(now.bytes_total);
            bar.set_position(now.bytes_in);
            bar.set_message(text.to_owned());
            return;
        }
        let since = self.last_line.elapsed();
        let is_due = match self.format {
            Format::Text => since >= LINE_EVERY,
            Format::JsonLines => since >= OBJECT_EVERY,
            Format::Json => false,
        };
        if !is_due {
            return;
        }
        self.last_line = Instant::now();
        if self.format == Format::JsonLines {
            self.format.json(&object(now));
        } else {
            let percent = now.bytes_in as f64 / now.bytes_total.max(1) as f64 * 100.0;
            output::message(&format!("{percent:.0} % {text}"));
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A state for programs.
fn object(now: &Snapshot) -> serde_json::Value {
    json!({
        "schema": "df11.progress/1",
        "phase": now.phase.as_str(),
        "bytes_in": now.bytes_in,
        "bytes_total": now.bytes_total,
        "bytes_out": now.bytes_out,
        "units_done": now.units_done,
        "units": now.units,
        "elapsed": now.elapsed.as_secs_f64(),
    })
}
