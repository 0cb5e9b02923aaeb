//! Requests to stop: Ctrl-C, termination, a closed terminal.

use std::{
    io::ErrorKind::{OutOfMemory, WouldBlock},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use df11_file::{Code, Error, Result};

use crate::{args::usage, output};

/// How often the user asked to stop.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// The first signal asks to stop cleanly, the second ends the program at once.
pub fn watch() -> Result<()> {
    let handler = || {
        if INTERRUPTS.fetch_add(1, Relaxed) > 0 {
            let left = "unfinished files, NAME.partial and NAME.journal, may be left; the next run goes on from them";
            output::message(&format!("df11: ended at once; {left}"));
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| match error {
        // It starts a thread.
        ctrlc::Error::System(error) if matches!(error.kind(), WouldBlock | OutOfMemory) => {
            let message = format!("signals cannot be handled: {error}");
            Error::new(Code::NoMemory, message).hint("Close other programs.")
        }
        error => usage(format!("signals cannot be handled: {error}")),
    })
}

/// Whether a signal has come.
pub fn asked_to_stop() -> bool {
    INTERRUPTS.load(Relaxed) > 0
}
