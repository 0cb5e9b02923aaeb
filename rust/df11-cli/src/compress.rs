//! `df11 compress`.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use df11_file::{Job, PlanReport, Report, Result, Status, plan};

use crate::{
    args::{Compress, usage},
    listing,
    output::{self, bytes},
    progress::Display,
};

const POLL: Duration = Duration::from_millis(100);

/// How often the user asked to stop.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// Compresses a file, or with `--dry-run` shows the plan.
pub fn compress(command: &Compress, as_json: bool) -> Result<()> {
    let plan = plan(
        &command.source,
        command.output.as_deref(),
        command.options()?,
    )?;
    if command.dry_run {
        listing::show(&PlanReport::new(&plan), as_json);
        return Ok(());
    }
    watch_signals()?;
    let job = Job::start(plan)?;
    let mut display = Display::new(as_json);
    while !job.join(Some(POLL)) {
        if INTERRUPTS.load(Relaxed) > 0 {
            job.cancel();
        }
        display.show(job.plan(), &job.snapshot());
    }
    display.end();
    let report = job.result()?;
    if as_json {
        output::json(&report);
    } else {
        show(&report);
    }
    Ok(())
}

/// The first signal stops the job cleanly, the second the program at once.
fn watch_signals() -> Result<()> {
    let handler = || {
        if INTERRUPTS.fetch_add(1, Relaxed) > 0 {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| usage(format!("signals cannot be handled: {error}")))
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
