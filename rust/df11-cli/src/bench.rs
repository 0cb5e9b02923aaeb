//! `df11 bench`.

use df11_file::{
    Result,
    bench::{self, BenchReport, Estimate, Limit, MemoryRates, TimeRange, Transfer},
};

use crate::{
    args,
    output::{self, Format, bytes},
    signals,
};

/// Measures, and shows the rates and the estimate.
pub fn bench(command: &args::Bench, format: Format) -> Result<()> {
    let request = command.request()?;
    signals::watch()?;
    let report = bench::bench(&request, &signals::asked_to_stop)?;
    format.show(&report, show);
    Ok(())
}

fn show(report: &BenchReport) {
    let read_from = report.estimate.as_ref().map(|model| model.source.as_str());
    output::line(&format!("kernel {}, memory to memory", report.kernel));
    for rates in &report.memory {
        output::line(&format!("  {:<14}{}", threads(rates), speeds(rates)));
    }
    output::line(&format!("disk of {}", report.folder));
    output::line(&format!(
        "  write         {}, flushed",
        transferred(&report.write)
    ));
    output::line(&format!(
        "  read          {} of {}{}",
        transferred(&report.read),
        read_from.unwrap_or("what was written"),
        origin(&report.read)
    ));
    if let Some(model) = &report.estimate {
        estimate(model);
    }
}

fn threads(rates: &MemoryRates) -> String {
    match rates.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    }
}

fn speeds(rates: &MemoryRates) -> String {
    format!(
        "compress {:.0}, verify {:.0} million weights/s",
        rates.compress_weights_per_second / 1e6,
        rates.verify_weights_per_second / 1e6
    )
}

fn transferred(transfer: &Transfer) -> String {
    let rate = transfer.bytes_per_second / 1e6;
    format!("{rate:.0} MB/s, {}", bytes(transfer.bytes))
}

fn origin(read: &Transfer) -> &'static str {
    match read.was_from_disk() {
        Some(true) => ", from the disk",
        Some(false) => ", from memory: the disk may be slower",
        None => "",
    }
}

fn estimate(model: &Estimate) {
    output::line(&format!(
        "{}: {} ({})",
        model.source, model.architecture, model.architecture_name
    ));
    output::line(&format!(
        "  size          {} -> about {}",
        bytes(model.source_bytes),
        bytes(model.predicted_bytes)
    ));
    output::line(&format!(
        "  time          {}",
        range(&model.with_verification)
    ));
    output::line(&format!(
        "  --verify off  {}",
        range(&model.without_verification)
    ));
    output::notes("note         ", &model.notes);
}

fn range(range: &TimeRange) -> String {
    let limit = match range.limit {
        Limit::Reading => "the disk limits (reading)",
        Limit::Computing => "the processor limits",
        Limit::Writing => "the disk limits (writing)",
    };
    let (least, most) = (duration(range.least_seconds), duration(range.most_seconds));
    if least == most {
        return format!("about {least}, {limit}");
    }
    format!("{least} to {most}, {limit}")
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => "1 s".to_owned(),
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}
