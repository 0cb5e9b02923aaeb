//! The `df11` command as a library: `run(args)` gives the exit code. Data goes to standard output, progress and messages to standard error.

mod args;
mod bench;
mod compress;
mod env;
mod exit;
mod listing;
mod output;
mod progress;
mod restore;
mod signals;
mod verify;
mod watch;

use std::ffi::OsString;

use clap::Parser;

use args::{Args, Command};

/// Runs the command line and gives its exit code. `host` is what the program that runs it has to tell about itself, by name; `df11 env` shows it.
pub fn run(args: impl IntoIterator<Item = OsString>, host: &[(String, String)]) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; clap knows where each goes.
            let _ = error.print();
            return if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            };
        }
    };
    let json = args.json;
    let outcome = match args.command {
        Command::Inspect(command) => listing::inspect(&command, json),
        Command::Compress(command) => compress::compress(&command, json),
        Command::Verify(command) => verify::verify(&command, json),
        Command::Restore(command) => restore::restore(&command, json),
        Command::Bench(command) => bench::bench(&command, json),
        Command::Architectures(command) => listing::architectures(&command, json),
        Command::Env(command) => env::env(&command, host, json),
    };
    match outcome {
        Ok(()) => exit::DONE,
        Err(error) => {
            output::error(&error, json);
            exit::code(&error)
        }
    }
}
