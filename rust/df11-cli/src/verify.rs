//! `df11 verify`.

use df11_file::{
    Result,
    check::{self, CheckReport},
};

use crate::{
    args::Verify,
    output::{self, Format, bytes},
    signals, watch,
};

/// Checks a file.
pub fn verify(command: &Verify, format: Format) -> Result<()> {
    let task = check::start(&command.file, command.options()?)?;
    // Until here a signal ends the program at once, also where a disk does not answer.
    signals::watch()?;
    let report = watch::watch(&task, format, |now| {
        format!("unit {}/{}", now.units_done, now.units)
    })?;
    format.show(&report, show);
    Ok(())
}

fn show(report: &CheckReport) {
    output::line(&format!("{}: sound, level {}", report.file, report.level));
    output::line(&format!(
        "  {}, {} units, {} of {} kernel chunks decoded, {:.1} s",
        bytes(report.bytes),
        report.units,
        report.chunks_decoded,
        report.chunks,
        report.seconds,
    ));
    if let (Some(gpu), Some(kernel)) = (&report.gpu, &report.kernel_file) {
        output::line(&format!("  decoded on {gpu}, with {kernel}"));
    }
    for checked in &report.checked {
        output::line(&format!("  checked: {checked}"));
    }
    for unseen in &report.unseen {
        output::line(&format!("  not seen at this level: {unseen}"));
    }
    if let Some(seed) = report.seed {
        output::line(&format!("  the same choice again: --seed {seed}"));
    }
}
