//! `df11 inspect` and `df11 architectures`.

use df11_file::{PlanReport, Result, architectures::Library, plan};

use crate::{
    args::{Architectures, Inspect},
    output::{self, bytes},
};

/// Shows the plan for a file.
pub fn inspect(command: &Inspect, as_json: bool) -> Result<()> {
    let plan = plan(&command.source, None, command.recognition.options()?)?;
    show(&PlanReport::new(&plan), as_json);
    Ok(())
}

/// Shows a plan.
pub fn show(report: &PlanReport, as_json: bool) {
    if as_json {
        return output::json(report);
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
    output::loader("loader       ", report.loader.as_ref());
    output::notes("note         ", &report.notes);
}

/// Lists the architectures. Loading them checks them.
pub fn architectures(command: &Architectures, as_json: bool) -> Result<()> {
    let library = Library::load(&command.definitions.folders)?;
    if command.check {
        output::line("all files are sound");
        return Ok(());
    }
    if as_json {
        output::json(&library.summaries());
        return Ok(());
    }
    for known in library.summaries() {
        let refused = known
            .reason
            .map_or(String::new(), |reason| format!("  refused: {reason}"));
        output::line(&format!(
            "{:<20} {:<32} {}{refused}",
            known.id, known.name, known.origin
        ));
    }
    Ok(())
}
