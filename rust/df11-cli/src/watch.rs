//! Waiting for long work: the bar moves, and signals stop it.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use df11_file::{Result, Snapshot, Task};

use crate::{args::usage, progress::Display};

const POLL: Duration = Duration::from_millis(100);

/// How often the user asked to stop.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// Waits until the work has ended; `text` tells its state. `quiet` shows nothing.
pub fn watch<R: Clone + Send + 'static>(
    task: &Task<R>,
    quiet: bool,
    text: impl Fn(&Snapshot) -> String,
) -> Result<R> {
    let mut display = Display::new(quiet);
    while !task.join(Some(POLL)) {
        if asked_to_stop() {
            task.cancel();
        }
        let now = task.snapshot();
        display.show(&now, &text(&now));
    }
    display.end();
    task.result()
}

/// Whether a signal has come.
pub fn asked_to_stop() -> bool {
    INTERRUPTS.load(Relaxed) > 0
}

/// The first signal stops the work cleanly, the second the program at once. To be called before the work starts.
pub fn signals() -> Result<()> {
    let handler = || {
        if INTERRUPTS.fetch_add(1, Relaxed) > 0 {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| usage(format!("signals cannot be handled: {error}")))
}
