//! `df11 inspect` and `df11 architectures`.

use df11_file::{Code, Contents, PlanReport, Result, architectures::Library, contents, plan};

use crate::{
    args::{Architectures, Inspect},
    output::{self, Format, bytes},
};

/// Shows the plan for a file; of a DF11 file what it holds.
pub fn inspect(command: &Inspect, format: Format) -> Result<()> {
    let refused = match plan(&command.source, None, command.recognition.options()?) {
        Ok(plan) => {
            show(&PlanReport::new(&plan), format);
            return Ok(());
        }
        Err(error) => error,
    };
    if refused.code != Code::AlreadyDf11 {
        return Err(refused);
    }
    let found = contents(&command.source)?;
    format.show(&found, show_contents);
    Ok(())
}

/// Shows what a DF11 file holds.
fn show_contents(found: &Contents) {
    output::line(&format!("{}: {}, DFloat11", found.file, bytes(found.bytes)));
    let Some(df11) = &found.df11 else { return };
    output::line(&format!(
        "  units         {} with {} weights, {:.2} bits each",
        df11.units.len(),
        df11.weights,
        df11.bits_per_weight
    ));
    output::line(&format!("  plain         {}", bytes(df11.plain_bytes)));
    let unknown = || "unknown".to_owned();
    output::line(&format!(
        "  made from     {}, by {}",
        df11.source_name.clone().unwrap_or_else(unknown),
        df11.tool.clone().unwrap_or_else(unknown)
    ));
    output::line(&match &df11.not_exact {
        None => "  restorable    byte for byte".to_owned(),
        Some(reason) => format!("  restorable    not byte for byte: {reason}"),
    });
    if df11.not_exact.is_some() {
        let usable = if df11.source_name.is_some() {
            "df11 restore --usable"
        } else {
            "df11 restore"
        };
        output::line(&format!(
            "                {usable} makes a checkpoint with the same weights, if the architecture is known"
        ));
    }
}

/// Shows a plan.
pub fn show(report: &PlanReport, format: Format) {
    if format.is_json() {
        return format.json(report);
    }
    let weights: u64 = report.units.iter().map(|unit| unit.weights).sum();
    let saving = 100.0 - report.predicted_bytes as f64 / report.source_bytes.max(1) as f64 * 100.0;
    output::line(&format!(
        "{}: {}",
        report.source,
        bytes(report.source_bytes)
    ));
    output::line(&format!(
        "  architecture  {} ({}), {}",
        report.architecture, report.architecture_name, report.definition
    ));
    output::line(&format!(
        "  units         {} with {weights} weights",
        report.units.len()
    ));
    output::line(&format!(
        "  copied        {}",
        bytes(report.passthrough_bytes)
    ));
    output::line(&format!(
        "  left out      {} tensors, {}",
        report.dropped.len(),
        bytes(report.dropped_bytes)
    ));
    output::line(&format!(
        "  result        about {}, {saving:.0} % less: {}",
        bytes(report.predicted_bytes),
        report.target
    ));
    if (report.same_disk, report.rotating_disk) == (Some(true), Some(true)) {
        output::line(
            "  disk          one for source and result, and the system calls it a rotating one: they take turns if it proves slow; with the result on another it goes faster",
        );
    }
    output::loader("loader       ", report.loader.as_ref());
    output::notes("note         ", &report.notes);
}

/// Lists the architectures. Loading them checks them.
pub fn architectures(command: &Architectures, format: Format) -> Result<()> {
    let library = Library::load(&command.definitions.folders)?;
    if command.check {
        output::line("all files are sound");
        return Ok(());
    }
    if format.is_json() {
        format.json(&library.summaries());
        return Ok(());
    }
    for known in library.summaries() {
        let refused = known
            .reason
            .map_or(String::new(), |reason| format!("  refused: {reason}"));
        output::line(&format!(
            "{:<22} {:<55} {}{refused}",
            known.id, known.name, known.origin
        ));
    }
    Ok(())
}
