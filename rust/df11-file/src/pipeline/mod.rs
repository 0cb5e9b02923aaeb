//! From a plan to a file: the reader runs ahead, the pool encodes and verifies, one thread keeps the order.

mod choose;
mod crew;
mod encode;
mod existing;
mod fetch;
mod flow;
mod gain;
mod io_choice;
mod ledger;
mod overfill;
mod reader;
mod schedule;
mod span;
mod survey;
mod surveyor;
mod unit;
mod unit_check;
mod verify;
mod work;

use std::{thread, time::Instant};

use crossbeam_channel::bounded;

use crate::{
    budget::{Budget, SPANS},
    error::{Code, Error, Result},
    header::check_with_reference,
    options::{HeaderMode, IfExists},
    output::{
        FileMap, PartialFile,
        flush::while_flushing,
        manifest::{Hashes, Manifest, Rounding},
    },
    plan::{Plan, target_exists},
    progress::{Phase, Progress},
    report::{Report, Status},
    system,
    task::{spawn_scoped, stopped},
};
pub use existing::same_passthrough;
pub use reader::read_weights;
pub use span::SpanMemory;
pub use survey::locate;

use choose::{FirstPass, choose};
use crew::Crew;
use flow::Flow;
use ledger::Ledger;
use reader::{ReadTotals, Reader};
use work::Work;

/// Compresses. Returns when the file is complete under its name, or nothing of it is left.
///
/// # Errors
/// Every refusal and failure, with its code.
pub fn compress(plan: &Plan, progress: &Progress) -> Result<Report> {
    let (started, device_bytes) = (Instant::now(), system::device_bytes_read());
    progress.set_units(plan.units.len());
    let largest = plan
        .units
        .iter()
        .map(|unit| unit.weights)
        .max()
        .unwrap_or(0);
    let budget = Budget::for_plan(&plan.options, largest, plan.memory())?;
    plan.source.check_unchanged()?;
    if plan.target.exists() && plan.options.if_exists != IfExists::Replace {
        if plan.options.if_exists == IfExists::Skip && existing::is_result(plan, progress)? {
            progress.set_phase(Phase::Done);
            return Ok(Report::new(plan, &budget, Status::AlreadyDone).finished(plan, started));
        }
        return Err(target_exists(&plan.target));
    }
    let (file, left) = PartialFile::create(&plan.target)?;
    // Not before: an old partial file may take the space.
    file.check_space(plan.predicted_bytes())?;
    let mut report = Report::new(plan, &budget, Status::Done);
    if left {
        report
            .notes
            .push("a partial file left by an interrupted run was replaced".to_owned());
    }
    let outcome = if plan.options.keep_uncompressed {
        choose(plan, &budget, progress).and_then(|chosen| {
            report.take_left(chosen.left);
            let job = (&chosen.plan, &budget, &file);
            write(job, progress, chosen.survey, &mut report)
        })
    } else {
        let job = (plan, &budget, &file);
        write(job, progress, FirstPass::none(plan), &mut report)
    };
    // The codes of a failed write stay; a changed source explains any failure better.
    if outcome
        .as_ref()
        .is_err_and(|error| error.code != Code::Cancelled)
    {
        plan.source.check_unchanged()?;
    }
    outcome?;
    progress.check_cancelled()?;
    file.commit(plan.options.if_exists == IfExists::Replace)?;
    progress.set_phase(Phase::Done);
    report.device_bytes_read = system::device_bytes_read()
        .zip(device_bytes)
        .map(|(after, before)| after.saturating_sub(before));
    Ok(report.finished(plan, started))
}

/// Writes everything but the name.
fn write(
    (plan, budget, file): (&Plan, &Budget, &PartialFile),
    progress: &Progress,
    survey: FirstPass,
    report: &mut Report,
) -> Result<()> {
    let is_surveyed = survey.units.iter().all(Option::is_some);
    let steps = schedule::steps(plan, budget, is_surveyed);
    let loads = schedule::loads(plan, budget.span_weights, &steps);
    let sizes = || loads.iter().map(|load| schedule::load_bytes(plan, load));
    let bytes: u64 = sizes().sum();
    progress.set_total(survey.bytes + bytes, plan.options.verify.stages());
    let manifest = match plan.options.header {
        HeaderMode::SelfDescribing => Some(Manifest::new(plan)?),
        HeaderMode::Official => None,
    };
    let (home, free) = span::all_memory(sizes().max().unwrap_or(0) as usize)?;
    let (filled, spans) = bounded(SPANS);
    // Nobody ever waits to hand something over: there is room for all that can be on its way.
    let width = 2 * Flow::width(budget);
    let ((give, tasks), (tell, done)) = (bounded(width), bounded(width));
    let reader = Reader::new(plan, progress);
    let crew = Crew {
        plan,
        progress,
        file,
    };
    let (map, hashes, mut read) = while_flushing(file, |flush| {
        thread::scope(|scope| {
            let reading = spawn_scoped(scope, "df11-read", move || {
                reader.run(&loads, &home, &free, &filled)
            })?;
            for _ in 0..budget.threads {
                let (crew, tasks, tell) = (&crew, tasks.clone(), tell.clone());
                spawn_scoped(scope, "df11-work", move || {
                    crew.work(&tasks, &tell);
                })?;
            }
            drop((tasks, tell));
            let flow = Flow::new(budget, progress, (give, done), Ledger::new(plan, progress));
            let job = (plan, progress, file, manifest.as_ref());
            let mut work = Work::new(job, spans, flush, flow, survey.units)?;
            let outcome = steps
                .iter()
                .try_for_each(|step| work.step(*step))
                .and_then(|()| work.finish(report));
            if outcome.is_err() {
                // Otherwise the reader would first finish what it is reading, and wait for the brake.
                progress.cancel();
            }
            let read = reading.join().map_err(|_| stopped())?;
            outcome.map(|(map, hashes)| (map, hashes, read))
        })
    })?;
    read.add(survey.read);
    progress.set_phase(Phase::Finishing);
    plan.source.check_unchanged()?;
    report.take_totals(read.totals.bytes, &read.changes, read.io);
    // The header replaces the marker, so by then little may be left to flush: killed in between, the file would not be known as ours.
    file.sync()?;
    write_header(plan, file, &map, manifest.as_ref(), hashes, &read)
}

fn write_header(
    plan: &Plan,
    file: &PartialFile,
    map: &FileMap,
    manifest: Option<&Manifest>,
    tensors: Vec<u64>,
    read: &ReadTotals,
) -> Result<()> {
    let source = plan
        .source
        .header()
        .tensors
        .iter()
        .enumerate()
        .map(|(index, tensor)| match read.hashes[index] {
            None if tensor.bytes() == 0 => Some(xxhash_rust::xxh3::xxh3_64(&[])),
            hash => hash,
        });
    let hashes = Hashes {
        tensors,
        source: source.collect(),
    };
    let rounding = rounding(plan, read);
    let metadata = manifest.map_or_else(Vec::new, |manifest| manifest.metadata(&hashes, rounding));
    let header = map.header(&metadata);
    if header.len() as u64 + map.data_bytes() != map.file_bytes() {
        return Err(Error::new(
            Code::Internal,
            "the header does not fit the space that was reserved for it",
        ));
    }
    check_with_reference(&header, map.data_bytes())?;
    file.write(&header, 0)
}

/// What rounding did to the units' weights.
fn rounding(plan: &Plan, read: &ReadTotals) -> Rounding {
    let members = plan.units.iter().flat_map(|unit| &unit.members);
    let mut changes = members.filter_map(|member| read.changes.get(&member.tensor));
    if !plan.rounds() {
        Rounding::None
    } else if changes.any(|seen| seen.changed > 0) {
        Rounding::Changed
    } else {
        Rounding::Exact
    }
}

fn no_memory(error: &dyn std::error::Error) -> Error {
    let message = format!("the system does not give the memory of the budget: {error}");
    Error::new(Code::NoMemory, message).hint("Close other programs, or allow less memory.")
}
