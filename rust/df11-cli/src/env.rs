//! `df11 env`: what a fault report needs.

use std::{collections::BTreeMap, env, fs, path::Path};

use df11_file::{Result, architectures::Library, machine::Machine};
use serde::Serialize;

use crate::{
    args,
    output::{self, Format, bytes},
};

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: &'static str,
    /// Processor architecture and operating system that the program was built for.
    platform: String,
    /// The running executable: `df11` itself, or the Python that runs it.
    program: Option<String>,
    #[serde(flatten)]
    machine: Machine,
    /// How many architectures come from each folder or from the program itself.
    architectures: BTreeMap<String, usize>,
    comfyui: Option<ComfyUi>,
    host: BTreeMap<&'a str, &'a str>,
}

/// The ComfyUI in whose folder the command was run.
#[derive(Serialize)]
struct ComfyUi {
    version: String,
    folder: String,
}

/// Shows it.
pub fn env(command: &args::Env, host: &[(String, String)], format: Format) -> Result<()> {
    let library = Library::load(&command.definitions.folders)?;
    let mut architectures = BTreeMap::new();
    for known in library.summaries() {
        *architectures.entry(place(known.origin)).or_insert(0) += 1;
    }
    let report = Report {
        schema: "df11.env/1",
        version: env!("CARGO_PKG_VERSION"),
        platform: format!("{} {}", env::consts::ARCH, env::consts::OS),
        program: env::current_exe()
            .ok()
            .map(|path| path.display().to_string()),
        machine: Machine::of_this_process(command.kernel.as_deref())?,
        architectures,
        comfyui: env::current_dir().ok().and_then(|folder| comfyui(&folder)),
        host: host
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
    };
    format.show(&report, show);
    Ok(())
}

fn show(report: &Report<'_>) {
    let machine = &report.machine;
    let row = |name: &str, value: &str| output::line(&format!("  {name:<13} {value}"));
    output::line(&format!("df11 {} for {}", report.version, report.platform));
    row("program", report.program.as_deref().unwrap_or("unknown"));
    row("system", &machine.system);
    row("processor", &machine.processor);
    row("features", &machine.features.join(" "));
    row(
        "kernel",
        &format!("{} of {}", machine.kernel, machine.kernels.join(", ")),
    );
    if !machine.disabled_kernels.is_empty() {
        row("WRONG KERNELS", &machine.disabled_kernels.join(", "));
    }
    row("threads", &machine.threads.to_string());
    let [total, available, budget] = [
        machine.total_memory,
        machine.available_memory,
        machine.memory_budget,
    ]
    .map(bytes);
    row(
        "memory",
        &format!("{total}, {available} available; a job takes up to {budget}"),
    );
    for (place, count) in &report.architectures {
        row("architectures", &format!("{count} from {place}"));
    }
    let comfyui = report.comfyui.as_ref().map_or_else(
        || "not in this folder or above it".to_owned(),
        |found| format!("{} in {}", found.version, found.folder),
    );
    row("ComfyUI", &comfyui);
    for (name, value) in &report.host {
        row(name, value);
    }
}

/// The folder of an architecture file, or that it is built in.
fn place(origin: &str) -> String {
    if origin.starts_with("built-in ") {
        return "this program".to_owned();
    }
    let folder = Path::new(origin).parent().unwrap_or(Path::new(origin));
    folder.display().to_string()
}

/// The ComfyUI whose folder this is, holds or lies in. Its portable edition has the folder `ComfyUI` beside Python's.
fn comfyui(start: &Path) -> Option<ComfyUi> {
    start
        .ancestors()
        .flat_map(|folder| [folder.to_owned(), folder.join("ComfyUI")])
        .find_map(|folder| {
            let text = fs::read_to_string(folder.join("comfyui_version.py")).ok()?;
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("__version__"))?;
            Some(ComfyUi {
                version: line
                    .trim_matches(|c: char| c == '=' || c == '"' || c == '\'' || c.is_whitespace())
                    .to_owned(),
                folder: folder.display().to_string(),
            })
        })
}
