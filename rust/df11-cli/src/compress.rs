//! `df11 compress`.

use df11_file::{Job, PlanReport, Report, Result, Status, plan};

use crate::{
    args::Compress,
    listing,
    output::{self, Format, bytes},
    signals, watch,
};

/// Compresses a file, or with `--dry-run` shows the plan.
pub fn compress(command: &Compress, format: Format) -> Result<()> {
    let plan = plan(
        &command.source,
        command.output.as_deref(),
        command.options()?,
    )?;
    if command.dry_run {
        listing::show(&PlanReport::new(&plan), format);
        return Ok(());
    }
    signals::watch()?;
    let job = Job::start(plan)?;
    let units = &job.plan().units;
    let report = watch::watch(&job, format, |now| {
        let unit = now.unit.and_then(|unit| units.get(unit as usize));
        let name = unit.map_or("", |unit| unit.name.as_str());
        let phase = now.phase.as_str();
        format!("{phase} unit {}/{} {name}", now.units_done, now.units)
    })?;
    format.show(&report, show);
    Ok(())
}

fn show(report: &Report) {
    if report.status == Status::AlreadyDone {
        return output::line(&format!("{} already is this result", report.target));
    }
    let rate = report.source_bytes as f64 / report.seconds.max(1e-9) / 1e6;
    output::line(&report.target);
    output::line(&format!(
        "  {} -> {} ({:.1} %) in {:.1} s, {rate:.0} MB/s, {} units, verify {}",
        bytes(report.source_bytes),
        bytes(report.target_bytes),
        report.ratio * 100.0,
        report.seconds,
        report.units.len(),
        report.verify,
    ));
    output::loader("load it with", report.loader.as_ref());
    output::notes("note:", &report.notes);
}
