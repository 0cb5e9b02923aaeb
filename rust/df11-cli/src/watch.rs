//! Waiting for long work: the bar moves, and signals stop it.

use std::time::Duration;

use df11_file::{Result, Snapshot, Task};

use crate::{output::Format, progress::Display, signals};

const POLL: Duration = Duration::from_millis(100);

/// Waits until the work has ended and shows its state, which `text` tells.
pub fn watch<R: Clone + Send + 'static>(
    task: &Task<R>,
    format: Format,
    text: impl Fn(&Snapshot) -> String,
) -> Result<R> {
    let mut display = Display::new(format);
    while !task.join(Some(POLL)) {
        if signals::asked_to_stop() {
            task.cancel();
        }
        let now = task.snapshot();
        display.show(&now, &text(&now));
    }
    display.end();
    task.result()
}
