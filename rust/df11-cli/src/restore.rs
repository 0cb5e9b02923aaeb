//! `df11 restore`.

use df11_file::{
    Result, Status,
    restore::{self, RestoreReport},
};

use crate::{
    args::Restore,
    output::{self, bytes},
    signals, watch,
};

/// Restores a file.
pub fn restore(command: &Restore, as_json: bool) -> Result<()> {
    signals::watch()?;
    let target = command.output.as_deref();
    let task = restore::start(&command.file, target, command.options()?)?;
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

fn show(report: &RestoreReport) {
    if report.status == Status::AlreadyDone {
        return output::line(&format!("{} already is the original", report.target));
    }
    output::line(&report.target);
    output::line(&format!(
        "  {} -> {} in {:.1} s, {} tensors, the original byte for byte",
        bytes(report.source_bytes),
        bytes(report.target_bytes),
        report.seconds,
        report.tensors,
    ));
    output::notes("note:", &report.notes);
}
