//! `df11 restore`.

use df11_file::{
    Result, Status,
    restore::{self, RestorePlanReport, RestoreReport},
};

use crate::{
    args::Restore,
    output::{self, bytes},
    signals, watch,
};

/// Restores a file, or with `--dry-run` says what would be restored.
pub fn restore(command: &Restore, as_json: bool) -> Result<()> {
    let (target, options) = (command.output.as_deref(), command.options()?);
    if command.dry_run {
        let plan = restore::plan(&command.file, target, options)?;
        if as_json {
            output::json(&plan);
        } else {
            show_plan(&plan);
        }
        return Ok(());
    }
    signals::watch()?;
    let task = restore::start(&command.file, target, options)?;
    let report = watch::watch(&task, as_json, |now| {
        let phase = now.phase.as_str();
        format!("{phase} unit {}/{}", now.units_done, now.units)
    })?;
    if as_json {
        output::json(&report);
    } else {
        show(&report);
    }
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
