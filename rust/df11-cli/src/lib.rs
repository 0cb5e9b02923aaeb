//! The `df11` command as a library: `run(args)` gives the exit code. Data goes to standard output, progress and messages to standard error.

mod args;
mod bench;
mod compress;
mod env;
mod exit;
mod kernel_file;
mod listing;
mod output;
mod progress;
mod restore;
mod signals;
mod system;
mod verify;
mod watch;

use std::ffi::OsString;

use clap::Parser;
use df11_file::reserve::{self, Reserving};

use args::{Args, Command};
use output::Format;

/// Of the command, and of the Python module, which depends on this crate.
#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

/// Runs the command line and gives its exit code. `host` is what the program that runs it has to tell about itself, by name; `df11 env` shows it.
pub fn run(args: impl IntoIterator<Item = OsString>, host: &[(String, String)]) -> u8 {
    system::survive_size_limit();
    let args: Vec<_> = args.into_iter().collect();
    let code = match Args::try_parse_from(&args) {
        Ok(args) => perform(args, host),
        Err(error) if error.use_stderr() => {
            let has = |option: &str| args.iter().any(|arg| arg == option);
            match Format::of(has("--json"), has("--json-lines")) {
                Format::Text => drop(error.print()),
                format => output::error(&args::wrong(&error), format),
            }
            exit::USAGE
        }
        // Help and version are no errors.
        Err(error) => {
            output::text(&error.to_string());
            exit::DONE
        }
    };
    output::finish(code)
}

fn perform(args: Args, host: &[(String, String)]) -> u8 {
    let format = args.format();
    let outcome = reserve::fill().and_then(|()| match args.command {
        Command::Inspect(command) => listing::inspect(&command, format),
        Command::Compress(command) => compress::compress(&command, format),
        Command::Verify(command) => verify::verify(&command, format),
        Command::Restore(command) => restore::restore(&command, format),
        Command::Bench(command) => bench::bench(&command, format),
        Command::Architectures(command) => listing::architectures(&command, format),
        Command::Env(command) => env::env(&command, host, format),
        Command::Completions(command) => {
            output::text(&command.script());
            Ok(())
        }
    });
    match outcome {
        Ok(()) => exit::DONE,
        Err(error) => {
            output::error(&error, format);
            exit::code(&error)
        }
    }
}
