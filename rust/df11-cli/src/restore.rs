//! `df11 restore`.

use df11_file::{
    Result, Status,
    restore::{self, Restoration, RestorePlanReport, RestoreReport},
};

use crate::{
    args::Restore,
    output::{self, Format, bytes},
    signals, watch,
};

/// Restores a file, or with `--dry-run` says what would be restored.
pub fn restore(command: &Restore, format: Format) -> Result<()> {
    let (target, options) = (command.output.as_deref(), command.options()?);
    if command.dry_run {
        let plan = restore::plan(&command.file, target, options)?;
        format.show(&plan, show_plan);
        return Ok(());
    }
    let restoration = Restoration::new(&command.file, target, options)?;
    // Until here a signal ends the program at once: a disk that does not answer keeps nobody waiting, and nothing is written.
    signals::watch()?;
    let task = restoration.start()?;
    let report = watch::watch(&task, format, |now| {
        let phase = now.phase.as_str();
        format!("{phase} unit {}/{}", now.units_done, now.units)
    })?;
    format.show(&report, show);
    Ok(())
}

/// What a restored file is.
fn what(exact: bool) -> &'static str {
    if exact {
        "the original byte for byte"
    } else {
        "a usable checkpoint, not the original file byte for byte"
    }
}

fn show_plan(plan: &RestorePlanReport) {
    output::line(&plan.target);
    output::line(&format!(
        "  would have {} and {} tensors, {}",
        bytes(plan.target_bytes),
        plan.tensors.len(),
        what(plan.exact),
    ));
    notes(plan.architecture.as_deref(), &plan.notes);
}

fn show(report: &RestoreReport) {
    if report.status == Status::AlreadyDone {
        let what = what(report.exact);
        return output::line(&format!("{} already is {what}", report.target));
    }
    output::line(&report.target);
    output::line(&format!(
        "  {} -> {} in {:.1} s, {} tensors, {}",
        bytes(report.source_bytes),
        bytes(report.target_bytes),
        report.seconds,
        report.tensors,
        what(report.exact),
    ));
    notes(report.architecture.as_deref(), &report.notes);
}

fn notes(architecture: Option<&str>, notes: &[String]) {
    if let Some(architecture) = architecture {
        output::line(&format!("  architecture: {architecture}"));
    }
    output::notes("note:", notes);
}
