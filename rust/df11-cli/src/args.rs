//! The command line.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, builder::PossibleValuesParser, error::ErrorKind};
use df11_file::{
    Error, Options, Result,
    architectures::Choice,
    bench::Request,
    check::{CheckOptions, GpuOptions, Level},
    options::{self, Cast, ConfigVersion, Form, HeaderMode, IfExists, Io, kernel},
    restore::RestoreOptions,
};

use crate::{kernel_file, output::Format};

/// Turns BF16 checkpoints into DFloat11 files: lossless, about 30 % smaller, decoded on the GPU by existing loaders.
#[derive(Parser)]
#[command(name = "df11", version, max_term_width = 100)]
pub struct Args {
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Print JSON objects, one a line: the progress of long work every second, then the result.
    #[arg(long, global = true, conflicts_with = "json")]
    json_lines: bool,
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// How results are printed.
    pub fn format(&self) -> Format {
        Format::of(self.json, self.json_lines)
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Show what a file is and what compressing it would give. Reads the header only.
    Inspect(Inspect),
    /// Compress a checkpoint.
    Compress(Compress),
    /// Check a DF11 file, whoever wrote it.
    Verify(Verify),
    /// Make the original file again from a DF11 file, byte for byte; or a usable BF16 checkpoint, where the file does not tell its original.
    Restore(Restore),
    /// Measure this machine and a disk for some seconds, and estimate how long compressing a model takes.
    Bench(Bench),
    /// List the known architectures, or check architecture files.
    Architectures(Architectures),
    /// Show what a fault report needs: versions, processor, kernels, memory, where the architectures come from.
    Env(Env),
    /// Print the completions of a shell, made from these very options.
    Completions(Completions),
}

#[derive(clap::Args)]
pub struct Definitions {
    /// A folder of further architecture files; may be given more than once, later ones win.
    #[arg(
        long = "architectures",
        env = "DF11_ARCHITECTURES",
        value_name = "FOLDER"
    )]
    pub folders: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub struct Recognition {
    /// The model's architecture. `auto` tells it from the tensor names; another must agree with them.
    #[arg(long, default_value = "auto", value_name = "ID")]
    pub arch: String,
    #[command(flatten)]
    pub definitions: Definitions,
    /// How the header is written: with what is needed to restore the source, or as the official tool does.
    #[arg(long, default_value = HeaderMode::NAMES[0], value_parser = PossibleValuesParser::new(HeaderMode::NAMES))]
    pub header: String,
    /// Round unit weights of other float types to BF16 instead of refusing them.
    #[arg(long, default_value = Cast::NAMES[0], value_parser = PossibleValuesParser::new(Cast::NAMES))]
    pub cast: String,
    /// Leave those units as they are that DF11 cannot hold, would make larger, or would have to round, where the loader takes them so.
    #[arg(long)]
    pub keep_uncompressed: bool,
    /// Write one file, a folder with a file for each unit, or a folder with one file. `auto` goes by the name (.safetensors is a file) and the architecture.
    #[arg(long, default_value = AUTO, value_parser = PossibleValuesParser::new(layouts()))]
    pub layout: String,
}

#[derive(clap::Args)]
pub struct Inspect {
    /// The checkpoint: a file, the folder of a model, or the index of its files.
    pub source: PathBuf,
    #[command(flatten)]
    pub recognition: Recognition,
}

#[derive(clap::Args)]
pub struct Compress {
    /// The checkpoint: a file, the folder of a model, or the index of its files.
    pub source: PathBuf,
    /// The file or folder to write [default: NAME-DF11.safetensors or NAME-DF11 beside the source]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub recognition: Recognition,
    /// The version that the configuration in a folder names, for loaders that want another. The format is the same.
    #[arg(long, default_value = "0.5.0", value_parser = PossibleValuesParser::new(ConfigVersion::NAMES))]
    pub config_version: String,
    /// Decode what was written and compare it with the source before the file gets its name.
    #[arg(long, default_value = options::Verify::NAMES[0], value_parser = PossibleValuesParser::new(options::Verify::NAMES))]
    pub verify: String,
    /// What to do where the file exists. `skip` skips what already is this result and refuses anything else.
    #[arg(long, default_value = IfExists::NAMES[0], value_parser = PossibleValuesParser::new(IfExists::NAMES))]
    pub if_exists: String,
    /// Start from the beginning where an interrupted run has left a part of this result.
    #[arg(long)]
    pub no_resume: bool,
    /// Most memory, such as 256MiB [default: a quarter of what is free, 64 MiB to 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
    /// Read at most so many MB of the source a second, for shared and network disks.
    #[arg(long, value_name = "MB/s", value_parser = megabytes)]
    pub max_rate: Option<u64>,
    /// How the source is read: one piece after the other (spinning disks), several at once, or in the way that proves faster.
    #[arg(long, default_value = Io::NAMES[0], value_parser = PossibleValuesParser::new(Io::NAMES))]
    pub io: String,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The implementation of the hot loops; for tests and fault reports.
    #[arg(long, env = "DF11_KERNEL", hide = true)]
    pub kernel: Option<String>,
    /// Show the plan and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(clap::Args)]
pub struct Verify {
    /// The DF11 file or folder.
    pub file: PathBuf,
    /// The checkpoint that it was made from: then every weight is compared with it.
    #[arg(long, value_name = "SOURCE")]
    pub against: Option<PathBuf>,
    /// That checkpoint's architecture, where the file does not tell it and the tensor names could be another's.
    #[arg(long, default_value = "auto", value_name = "ID")]
    pub arch: String,
    /// How much is looked at: sizes and tables; every byte, by the hashes that the file carries; some kernel chunks decoded; everything decoded;
    /// and once more on an NVIDIA GPU, by the kernel that loaders use.
    #[arg(long, default_value = Level::NAMES[3], value_parser = PossibleValuesParser::new(Level::NAMES))]
    pub level: String,
    /// Kernel chunks to decode with `--level sample`, besides the first and last of each unit and those around its members' borders.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub samples: u64,
    /// The choice of these, as an earlier check printed it.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The kernel's file for `--level kernel` [default: decode.ptx of the Python package dfloat11, where one is installed]
    #[arg(long, value_name = "FILE")]
    pub kernel_ptx: Option<PathBuf>,
    /// The NVIDIA driver's library; for tests.
    #[arg(long, hide = true, value_name = "FILE")]
    pub cuda_driver: Option<PathBuf>,
    #[command(flatten)]
    pub definitions: Definitions,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The implementation of the hot loops; for tests and fault reports.
    #[arg(long, env = "DF11_KERNEL", hide = true)]
    pub kernel: Option<String>,
}

#[derive(clap::Args)]
pub struct Bench {
    /// The checkpoint to estimate for. It is only read.
    pub source: Option<PathBuf>,
    #[command(flatten)]
    pub recognition: Recognition,
    /// The folder whose disk is measured, with a file of at most 1 GiB that is removed again [default: the checkpoint's, or the current one]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The implementation of the hot loops; for tests and fault reports.
    #[arg(long, env = "DF11_KERNEL", hide = true)]
    pub kernel: Option<String>,
    /// Measures too little for the rates to mean anything; for tests.
    #[arg(long, hide = true)]
    pub quick: bool,
}

#[derive(clap::Args)]
pub struct Restore {
    /// The DF11 file or folder.
    pub file: PathBuf,
    /// The file to write [default: the original's name, or NAME-restored.safetensors, beside the DF11 file]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make one BF16 checkpoint for loaders of uncompressed models, of what the file holds, also where the file tells its original.
    #[arg(long)]
    pub usable: bool,
    /// The model's architecture, where the file does not tell its original and the tensor names do not show it.
    #[arg(long, default_value = "auto", value_name = "ID")]
    pub arch: String,
    #[command(flatten)]
    pub definitions: Definitions,
    /// What to do where the file exists. `skip` skips what already is the file that would be written and refuses anything else.
    #[arg(long, default_value = IfExists::NAMES[0], value_parser = PossibleValuesParser::new(IfExists::NAMES))]
    pub if_exists: String,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// The implementation of the hot loops; for tests and fault reports.
    #[arg(long, env = "DF11_KERNEL", hide = true)]
    pub kernel: Option<String>,
    /// Show what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(clap::Args)]
pub struct Architectures {
    /// Only check the files. Every fault of every file is named.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub definitions: Definitions,
}

#[derive(clap::Args)]
pub struct Env {
    #[command(flatten)]
    pub definitions: Definitions,
    /// The implementation of the hot loops; for tests and fault reports.
    #[arg(long, env = "DF11_KERNEL", hide = true)]
    pub kernel: Option<String>,
}

#[derive(clap::Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

impl Completions {
    /// Its script.
    pub fn script(&self) -> String {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Args::command(), "df11", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    }
}

impl Recognition {
    /// The options that decide what a file is.
    pub fn options(&self) -> Result<Options> {
        let form = Some(self.layout.as_str()).filter(|layout| *layout != AUTO);
        Ok(Options {
            architecture: Choice::from(self.arch.as_str()),
            header: self.header.parse()?,
            cast: self.cast.parse()?,
            keep_uncompressed: self.keep_uncompressed,
            form: form.map(str::parse).transpose()?,
            definitions: self.definitions.folders.clone(),
            ..Options::default()
        })
    }
}

/// The layout that depends on name and architecture.
const AUTO: &str = "auto";

fn layouts() -> impl Iterator<Item = &'static str> {
    [AUTO].into_iter().chain(Form::NAMES.iter().copied())
}

impl Compress {
    /// All options.
    pub fn options(&self) -> Result<Options> {
        Ok(Options {
            config_version: self.config_version.parse()?,
            verify: self.verify.parse()?,
            if_exists: self.if_exists.parse()?,
            no_resume: self.no_resume,
            max_memory: self.max_memory,
            max_rate: self.max_rate,
            io: self.io.parse()?,
            threads: self.threads,
            kernel: kernel(self.kernel.as_deref())?,
            ..self.recognition.options()?
        })
    }
}

impl Verify {
    /// All options.
    pub fn options(&self) -> Result<CheckOptions> {
        let level = self.level.parse()?;
        let wanted = || {
            (level == Level::Kernel)
                .then(kernel_file::installed)
                .flatten()
        };
        Ok(CheckOptions {
            level,
            against: self.against.clone(),
            architecture: Choice::from(self.arch.as_str()),
            definitions: self.definitions.folders.clone(),
            samples: self.samples,
            seed: self.seed,
            threads: self.threads,
            kernel: kernel(self.kernel.as_deref())?,
            gpu: GpuOptions {
                kernel_file: self.kernel_ptx.clone().or_else(wanted),
                driver: self.cuda_driver.clone(),
            },
            ..CheckOptions::default()
        })
    }
}

impl Bench {
    /// What to measure.
    pub fn request(&self) -> Result<Request> {
        Ok(Request {
            source: self.source.clone(),
            folder: self.folder.clone(),
            options: Options {
                threads: self.threads,
                kernel: kernel(self.kernel.as_deref())?,
                ..self.recognition.options()?
            },
            quick: self.quick,
        })
    }
}

impl Restore {
    /// All options.
    pub fn options(&self) -> Result<RestoreOptions> {
        Ok(RestoreOptions {
            if_exists: self.if_exists.parse()?,
            usable: self.usable,
            architecture: Choice::from(self.arch.as_str()),
            definitions: self.definitions.folders.clone(),
            threads: self.threads,
            kernel: kernel(self.kernel.as_deref())?,
            ..RestoreOptions::default()
        })
    }
}

/// `256MiB`, `1GB`, or bytes.
fn size(text: &str) -> std::result::Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => {
            return Err(format!(
                "{unit} is no unit of memory; write for example 256MiB"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write a size such as 256MiB".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the size is too large".to_owned())
}

fn megabytes(text: &str) -> std::result::Result<u64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok((rate * 1e6).max(1.0) as u64),
        _ => Err("write a number of MB/s above 0".to_owned()),
    }
}

/// A command line that cannot be read, as an error of the library.
pub fn wrong(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return usage("no command was given").hint("`df11 --help` lists them.");
    }
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default();
    usage(message.trim_start_matches("error: ")).hint(lines.collect::<Vec<_>>().join(" "))
}

/// Turns a usage fault into an error of the library, for one place that reports both.
pub fn usage(message: impl Into<String>) -> Error {
    Error::new(df11_file::Code::Option, message)
}
