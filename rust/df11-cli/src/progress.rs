//! The one progress bar: by source bytes, with unit, rate and time left. Off a terminal, a line every ten seconds.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use df11_file::Snapshot;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows snapshots.
pub struct Display {
    bar: Option<ProgressBar>,
    last_line: Instant,
    quiet: bool,
}

impl Display {
    /// A display; `quiet` shows nothing.
    pub fn new(quiet: bool) -> Self {
        let style = "{bar:30} {percent:>3} %  {decimal_bytes_per_sec}  {eta} left  {msg}";
        let style =
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = shown.then(|| ProgressBar::new(0).with_style(style));
        Self {
            bar,
            last_line: Instant::now(),
            quiet,
        }
    }

    /// Shows the state of the work.
    pub fn show(&mut self, now: &Snapshot, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(now.bytes_total);
            bar.set_position(now.bytes_in);
            bar.set_message(text.to_owned());
        } else if !self.quiet && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
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
