//! The `df11` command.

fn main() -> std::process::ExitCode {
    df11_cli::run(std::env::args_os(), &[]).into()
}
