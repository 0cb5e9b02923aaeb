//! From a plan to a file: the reader runs ahead, the pool encodes and verifies, one thread keeps the order.

mod encode;
mod existing;
mod flush;
mod reader;
mod schedule;
mod survey;
mod unit_check;
mod verify;
mod work;

use std::{sync::mpsc, thread, time::Instant};

use rayon::ThreadPool;

use crate::{
    budget::Budget,
    error::{Code, Error, Result},
    header::check_with_reference,
    options::{HeaderMode, IfExists, Verify},
    output::{
        FileMap, PartialFile,
        manifest::{Hashes, Manifest},
    },
    plan::{Plan, folder_of, target_exists},
    progress::{Phase, Progress},
    report::{Report, Status},
    system,
};
use reader::{ReadTotals, Reader};
use work::{Channels, Work};

/// Buffers between reader and pool: one being filled, one in work.
const SPANS: usize = 2;

/// Compresses. Returns when the file is complete under its name, or nothing of it is left.
///
/// # Errors
/// Every refusal and failure, with its code.
pub fn compress(plan: &Plan, progress: &Progress) -> Result<Report> {
    let started = Instant::now();
    let largest = plan
        .units
        .iter()
        .map(|unit| unit.weights)
        .max()
        .unwrap_or(0);
    let budget = Budget::new(&plan.options, largest)?;
    plan.source.check_unchanged()?;
    let pool = pool(&budget, plan.options.low_priority)?;
    if plan.target.exists() && plan.options.if_exists != IfExists::Replace {
        if plan.options.if_exists == IfExists::Skip
            && pool.install(|| existing::is_result(plan, progress))?
        {
            progress.set_phase(Phase::Done);
            return Ok(Report::new(plan, &budget, Status::AlreadyDone).finished(plan, started));
        }
        return Err(target_exists(&plan.target));
    }
    let (file, left) = PartialFile::create(&plan.target)?;
    // Not before: an old partial file may take the space.
    check_space(plan, plan.predicted_bytes())?;
    let mut report = Report::new(plan, &budget, Status::Done);
    if left {
        report
            .notes
            .push("a partial file left by an interrupted run was replaced".to_owned());
    }
    let outcome = write(plan, progress, &budget, &pool, &file, &mut report);
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
    Ok(report.finished(plan, started))
}

/// Writes everything but the name.
fn write(
    plan: &Plan,
    progress: &Progress,
    budget: &Budget,
    pool: &ThreadPool,
    file: &PartialFile,
    report: &mut Report,
) -> Result<()> {
    let steps = schedule::steps(plan, budget.span_weights);
    let loads = schedule::loads(plan, budget.span_weights, &steps);
    let sizes = || loads.iter().map(|load| schedule::load_bytes(plan, load));
    progress.set_total(
        sizes().sum(),
        if plan.options.verify == Verify::Full {
            3
        } else {
            2
        },
    );
    let manifest = match plan.options.header {
        HeaderMode::SelfDescribing => Some(Manifest::new(plan)?),
        HeaderMode::Official => None,
    };
    let (filled, spans) = mpsc::sync_channel(SPANS);
    let (give_back, free) = mpsc::channel();
    for _ in 0..SPANS {
        // At once as large as any load: growing, a buffer would take up to twice that.
        let mut buffer = Vec::new();
        let longest = sizes().max().unwrap_or(0) as usize;
        buffer
            .try_reserve_exact(longest)
            .map_err(|error| no_memory(&error))?;
        let _ = give_back.send(buffer);
    }
    let reader = Reader::new(plan, progress);
    let (flush, flush_requests) = flush::channel();
    let (map, hashes, totals) = thread::scope(|scope| {
        let low_priority = plan.options.low_priority;
        let reading = scope.spawn(move || {
            if low_priority {
                system::lower_thread_priority();
            }
            reader.run(&loads, &free, &filled)
        });
        let flushing = scope.spawn(move || flush::flush_on_request(file, &flush_requests));
        let mut work = Work::new(
            plan,
            progress,
            budget,
            file,
            pool,
            manifest.as_ref(),
            Channels {
                spans,
                give_back,
                flush,
            },
        );
        let done = steps
            .iter()
            .try_for_each(|step| work.step(*step))
            .and_then(|()| work.finish(report));
        if done.is_err() {
            // Otherwise the reader would first finish what it is reading, and wait for the brake.
            progress.cancel();
        }
        let totals = reading
            .join()
            .map_err(|_| Error::new(Code::Internal, "the reading thread stopped"))?;
        let flushed = flushing
            .join()
            .map_err(|_| Error::new(Code::Internal, "the flushing thread stopped"))?;
        let (map, hashes) = done?;
        flushed.map(|()| (map, hashes, totals))
    })?;
    progress.set_phase(Phase::Finishing);
    plan.source.check_unchanged()?;
    report.take_totals(totals.bytes, totals.changed_values);
    // The header replaces the marker, so by then little may be left to flush: killed in between, the file would not be known as ours.
    file.sync()?;
    write_header(plan, file, &map, manifest.as_ref(), hashes, &totals)
}

fn write_header(
    plan: &Plan,
    file: &PartialFile,
    map: &FileMap,
    manifest: Option<&Manifest>,
    tensors: Vec<u64>,
    totals: &ReadTotals,
) -> Result<()> {
    let source =
        plan.source
            .header()
            .tensors
            .iter()
            .enumerate()
            .map(|(index, tensor)| match totals.hashes.get(&index) {
                None if tensor.bytes() == 0 => Some(xxhash_rust::xxh3::xxh3_64(&[])),
                hash => hash.copied(),
            });
    let hashes = Hashes {
        tensors,
        source: source.collect(),
    };
    let metadata = manifest.map_or_else(Vec::new, |manifest| manifest.metadata(&hashes));
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

fn pool(budget: &Budget, low_priority: bool) -> Result<ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new()
        .num_threads(budget.threads)
        .thread_name(|index| format!("df11-{index}"));
    let builder = builder.start_handler(move |_| {
        if low_priority {
            system::lower_thread_priority();
        }
    });
    builder.build().map_err(|error| {
        Error::new(
            Code::NoMemory,
            format!("worker threads cannot be started: {error}"),
        )
    })
}

fn no_memory(error: &dyn std::error::Error) -> Error {
    let message = format!("the system does not give the memory of the budget: {error}");
    Error::new(Code::NoMemory, message).hint("Close other programs, or allow less memory.")
}

/// Refuses before the first write where the disk would not hold `needed` bytes.
fn check_space(plan: &Plan, needed: u64) -> Result<()> {
    match system::free_space(&folder_of(&plan.target)) {
        Some(free) if free < needed => {
            let message = format!(
                "the result needs about {} MB, the disk has {} MB left",
                needed / 1_000_000,
                free / 1_000_000
            );
            Err(Error::new(Code::NoSpace, message)
                .hint("Free some space or choose another folder.")
                .at_path(&plan.target))
        }
        _ => Ok(()),
    }
}
