//! From a plan to a file: the reader runs ahead, workers encode and verify, one thread keeps the order, and one writes.

mod choose;
mod crew;
mod existing;
mod facts;
mod fetch;
mod flow;
mod gain;
mod io_choice;
mod known;
mod lanes;
mod ledger;
mod open;
mod overfill;
mod pool;
mod reader;
mod resume;
mod schedule;
mod span;
mod survey;
mod surveyor;
mod tied;
mod unit;
mod unit_check;
mod unit_stream;
mod verify;
mod work;
mod writer;

use std::{thread, time::Instant};

use crossbeam_channel::bounded;

use crate::{
    budget::Budget,
    error::{Code, Error, Result},
    header::check_with_reference,
    journal::Record,
    options::{HeaderMode, IfExists},
    output::{
        FileHeader, FileMap, FileNames, Output,
        flush::while_flushing,
        kept_aside,
        manifest::{Hashes, Manifest, Rounding},
    },
    plan::{Plan, file_name, is_taken, target_exists},
    progress::{Phase, Progress},
    report::{Report, Status},
    source::CONFIG_NAME,
    system,
    task::{spawn_scoped, stopped},
    turns::Turns,
};
pub use existing::same_passthrough;
pub use reader::read_weights;
pub use span::SpanMemory;
pub use survey::locate;

use choose::choose;
use crew::Crew;
use facts::SourceFacts;
use flow::{Channels, Flow};
use known::Known;
use ledger::Ledger;
use pool::SpanPool;
use reader::{Reader, StopReader};
use work::Work;

/// Compresses. Returns when the file is complete under its name, or nothing of it is left but what a later run can go on from.
///
/// # Errors
/// Every refusal and failure, with its code.
pub fn compress(plan: &Plan, progress: &Progress) -> Result<Report> {
    let (started, device_bytes) = (Instant::now(), system::device_bytes_read());
    progress.set_units(plan.units.len());
    let budget = Budget::for_plan(&plan.options, largest_unit(plan), plan.memory())?;
    plan.source.check_unchanged()?;
    Output::tidy(&plan.target);
    if is_taken(&plan.target) && plan.options.if_exists != IfExists::Replace {
        if plan.options.if_exists == IfExists::Skip && existing::is_result(plan, progress)? {
            progress.set_phase(Phase::Done);
            return Ok(Report::new(plan, &budget, Status::AlreadyDone).finished(plan, started));
        }
        return Err(target_exists(&plan.target));
    }
    tied::check(plan, progress)?;
    let files = plan.folder.as_ref().map(|folder| FileNames {
        tensors: plan.file_names(),
        others: folder.names(),
    });
    let (mut file, left) = Output::open(&plan.target, files)?;
    let mut report = Report::new(plan, &budget, Status::Done);
    progress.on_abandon(file.remover()?);
    let outcome = make((plan, &budget, &file), left, progress, &mut report);
    let outcome = outcome.and_then(|()| add_others(plan, &file, progress));
    let outcome = match outcome {
        // The codes of a failed write stay; a changed source explains any failure better.
        Err(error) if error.code != Code::Cancelled => {
            plan.source.check_unchanged().and(Err(error))
        }
        outcome => outcome,
    };
    let replace = plan.options.if_exists == IfExists::Replace;
    let kept = match outcome.and_then(|()| file.commit(replace, progress)) {
        Ok(kept) => kept,
        Err(error) => return Err(file.give_up(error)),
    };
    drop(file);
    report.notes.extend(kept.as_deref().map(kept_aside));
    progress.set_phase(Phase::Done);
    report.device_bytes_read = system::device_bytes_read()
        .zip(device_bytes)
        .map(|(after, before)| after.saturating_sub(before));
    Ok(report.finished(plan, started))
}

/// Weights of the largest unit.
fn largest_unit(plan: &Plan) -> u64 {
    let weights = plan.units.iter().map(|unit| unit.weights);
    weights.max().unwrap_or(0)
}

/// What all parts of a job work with.
type Job<'a> = (&'a Plan, &'a Budget, &'a Output);

/// Makes everything but the name, on top of what an interrupted run has left.
fn make(
    (plan, budget, file): Job<'_>,
    left: Option<Vec<Record>>,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let (finished, note) = resume::begin((plan, budget, file), left, progress)?;
    report.notes.extend(note);
    // Not before: an old partial file may take the space.
    file.check_space(plan.predicted_bytes())?;
    let facts = SourceFacts::default();
    if plan.options.keep_uncompressed {
        let chosen = choose((plan, budget, file), finished, &facts, progress)?;
        report.take_left(chosen.left);
        let job = (&chosen.plan, budget, file);
        return write(job, progress, chosen.known, &facts, report);
    }
    let known = Known::of(plan, finished, &facts);
    write((plan, budget, file), progress, known, &facts, report)
}

/// Writes what a folder holds besides tensors.
fn add_others(plan: &Plan, file: &Output, progress: &Progress) -> Result<()> {
    let Some(folder) = &plan.folder else {
        return Ok(());
    };
    for (path, _) in &folder.copies {
        progress.check_cancelled()?;
        let bytes = std::fs::read(path).map_err(|error| Error::read(path, &error))?;
        file.add(&file_name(path), &bytes)?;
    }
    file.add(CONFIG_NAME, folder.config.as_bytes())
}

/// Writes everything but the name.
fn write(
    (plan, budget, file): Job<'_>,
    progress: &Progress,
    known: Known,
    facts: &SourceFacts,
    report: &mut Report,
) -> Result<()> {
    let steps = schedule::steps(plan, budget, &known);
    let loads = schedule::loads(plan, budget.span_weights, &steps);
    let sizes = || loads.iter().map(|load| schedule::load_bytes(plan, load));
    let done = known.taken.bytes(plan);
    let total = known.bytes + done + sizes().sum::<u64>();
    progress.set_total(total, plan.options.verify.stages());
    progress.take_over(done);
    report.resumed_bytes = known.taken.written();
    let manifest = match plan.options.header {
        HeaderMode::SelfDescribing => Some(Manifest::new(plan)?),
        HeaderMode::Official => None,
    };
    let most_spans = budget.spans_for(largest_unit(plan));
    let pool = SpanPool::new(most_spans, sizes().max().unwrap_or(0) as usize)?;
    let room = Vec::<u8>::new().try_reserve_exact(budget.for_work() as usize);
    room.map_err(|error| no_memory(&error))?;
    let (filled, spans) = bounded(most_spans);
    // Nobody ever waits to hand something over: there is room for all that can be on its way.
    let most = 2 * Flow::width(budget) + 1;
    let ((give, tasks), (tell, done)) = (bounded(most), bounded(most));
    let (finish, finished) = bounded(most);
    let turns = Turns::new(plan.source.path(), &plan.target);
    let reader = Reader::new(plan, progress, facts, &turns);
    let crew = Crew {
        plan,
        progress,
        file,
    };
    let before = known.read.totals.bytes;
    let (map, hashes, read) = while_flushing(file, &turns, |flush| {
        thread::scope(|scope| {
            let reading = spawn_scoped(scope, "df11-read", move || {
                reader.run(&loads, pool, &filled)
            })?;
            let stop = StopReader(progress);
            for _ in 0..budget.threads {
                let (crew, tasks, tell) = (&crew, tasks.clone(), tell.clone());
                spawn_scoped(scope, "df11-work", move || {
                    crew.work(&tasks, &tell);
                })?;
            }
            spawn_scoped(scope, "df11-write", move || {
                writer::run((file, progress, flush), &finished, &tell);
            })?;
            drop(tasks);
            let ledger = Ledger::new((plan, progress, file, facts), &known.taken);
            let channels = Channels {
                spans,
                tasks: give,
                finished: finish,
                done,
            };
            let flow = Flow::new(
                (budget, most_spans),
                progress,
                channels,
                ledger,
                &plan.options,
            );
            let job = (plan, progress, file, manifest.as_ref());
            let mut work = Work::new(job, facts, flush, flow, known)?;
            let outcome = steps
                .iter()
                .try_for_each(|step| work.step(*step))
                .and_then(|()| work.finish(report));
            stop.unless(outcome.is_ok());
            let read = reading.join().map_err(|_| stopped())?;
            outcome.map(|(map, hashes)| (map, hashes, read))
        })
    })?;
    progress.set_phase(Phase::Finishing);
    plan.source.check_unchanged()?;
    report.notes.extend(turns.note());
    report.take_totals(before + read.totals.bytes, &facts.changes(), read.io);
    let hashes = Hashes {
        tensors: hashes,
        source: facts.hashes(plan),
    };
    write_header(plan, file, &map, manifest.as_ref(), &hashes, facts)
}

fn write_header(
    plan: &Plan,
    file: &Output,
    map: &FileMap,
    manifest: Option<&Manifest>,
    hashes: &Hashes,
    facts: &SourceFacts,
) -> Result<()> {
    let rounding = rounding(plan, facts);
    let described = manifest.map(|manifest| manifest.metadata(map, hashes, rounding));
    let metadata = described.unwrap_or_else(|| plan.plain_metadata());
    let mut headers = Vec::with_capacity(map.files().len());
    for (number, layout) in map.files().iter().enumerate() {
        // In a folder the first file describes all.
        let metadata = if number == 0 { &metadata[..] } else { &[] };
        let header = layout.header(metadata);
        if header.len() as u64 + layout.data_bytes() != layout.bytes() {
            return Err(Error::new(
                Code::Internal,
                "the header does not fit the space that was reserved for it",
            ));
        }
        check_with_reference(&header, layout.data_bytes())?;
        headers.push(FileHeader {
            start: layout.start(),
            header,
            bytes: layout.bytes(),
        });
    }
    file.finish(&headers)
}

/// What rounding did to the units' weights.
fn rounding(plan: &Plan, facts: &SourceFacts) -> Rounding {
    let members = plan.units.iter().flat_map(|unit| &unit.members);
    let mut changes = members.filter_map(|member| facts.of(member.tensor).changes);
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
