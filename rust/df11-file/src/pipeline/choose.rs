//! Which units are compressed where others may stay as they are: all are counted before anything is written.

use std::{collections::HashSet, thread};

use crossbeam_channel::bounded;

use super::{
    facts::SourceFacts,
    gain::Gain,
    known::Known,
    pool::SpanPool,
    reader::{Reader, StopReader},
    resume::Finished,
    schedule,
    survey::SurveyedUnit,
    surveyor::{Surveyor, received},
};
use crate::{
    budget::Budget,
    error::{Code, Error, Result},
    journal::Record,
    output::Output,
    plan::{Plan, UnitPlan},
    progress::{Phase, Progress},
    report::{LeftUnit, df11_bytes},
    task::{spawn_scoped, stopped},
    turns::Turns,
};

/// Spans that are read ahead of counting, which takes no time.
const READ_AHEAD: usize = 4;

/// What was chosen.
pub struct Chosen {
    /// The plan, with the other units among its copied tensors.
    pub plan: Plan,
    /// What is known of it.
    pub known: Known,
    /// The units that are left as they are, and why.
    pub left: Vec<LeftUnit>,
}

/// Surveys all units. Those that DF11 cannot hold or would make larger are left as they are, where the loader does not need them.
///
/// # Errors
/// `E_EXPONENT` where the loader does; `E_NO_GAIN` where no unit remains; those of reading; `E_CANCELLED`.
pub fn choose(
    (plan, budget, file): (&Plan, &Budget, &Output),
    mut finished: Finished,
    facts: &SourceFacts,
    progress: &Progress,
) -> Result<Chosen> {
    let mut counted = finished.counted(plan, facts);
    let open = (0..plan.units.len()).filter(|&unit| counted[unit].is_none());
    let steps: Vec<_> = open
        .map(|unit| schedule::Step::Survey { unit, keep: false })
        .collect();
    let loads = schedule::loads(plan, budget.span_weights, &steps);
    let sizes = || loads.iter().map(|load| schedule::load_bytes(plan, load));
    let bytes = sizes().sum();
    let pool = SpanPool::new(READ_AHEAD, sizes().max().unwrap_or(0) as usize)?;
    let (filled, spans) = bounded(READ_AHEAD);
    // Nothing is written meanwhile.
    let turns = Turns::default();
    let reader = Reader::new(plan, progress, facts, &turns);
    let mut surveyor = Surveyor::new(plan, progress, facts)?;
    progress.set_phase(Phase::Reading);
    let to_write = plan.unit_bytes() + plan.passthrough_bytes();
    progress.set_total(bytes + to_write, plan.options.verify.stages());
    let (surveyed, read) = thread::scope(|scope| {
        let reading = spawn_scoped(scope, "df11-read", move || {
            reader.run(&loads, pool, &filled)
        })?;
        let stop = StopReader(progress);
        let surveyed = counted.iter_mut().enumerate().map(|(unit, known)| {
            if let Some(known) = known.take() {
                return Ok(Ok(known));
            }
            let next = || received(spans.recv(), progress);
            match surveyor.unit(unit, next, None, Vec::new()) {
                Err(error) if error.code == Code::Exponent => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(surveyed) => {
                    let counted = surveyor.record(unit, &surveyed);
                    file.note(&Record::Counted(counted))?;
                    Ok(Ok(surveyed))
                }
            }
        });
        let surveyed: Result<Vec<_>> = surveyed.collect();
        stop.unless(surveyed.is_ok());
        let read = reading.join().map_err(|_| stopped())?;
        surveyed.map(|surveyed| (surveyed, read))
    })?;
    let (mut left, mut kept) = (Vec::new(), Vec::new());
    for (unit, surveyed) in plan.units.iter().zip(surveyed) {
        match reason(plan, unit, &surveyed)? {
            Some(why) => {
                progress.unit_done();
                left.push(LeftUnit::new(unit, plan.left_bytes(unit), why));
            }
            None => kept.push(surveyed.ok()),
        }
    }
    if kept.is_empty() {
        return Err(none_remains(plan, &left));
    }
    let names: HashSet<&str> = left.iter().map(|unit| unit.name.as_str()).collect();
    let is_left = |unit: &UnitPlan| names.contains(unit.name.as_str());
    let chosen = plan.leaving(is_left);
    let mut gain = Gain::new(&chosen);
    for (unit, surveyed) in chosen.units.iter().zip(kept.iter().flatten()) {
        gain.add(unit, df11_bytes(unit, surveyed.code.layout()))?;
    }
    let known = Known {
        taken: finished.take(&chosen, &kept, facts),
        units: kept,
        read,
        bytes,
    };
    Ok(Chosen {
        plan: chosen,
        known,
        left,
    })
}

/// Why a unit is left as it is; none where it is compressed.
///
/// # Errors
/// `E_EXPONENT` where neither can be.
fn reason(
    plan: &Plan,
    unit: &UnitPlan,
    surveyed: &std::result::Result<SurveyedUnit, Error>,
) -> Result<Option<String>> {
    let is_needed = plan.architecture.needs(&unit.name);
    match surveyed {
        Err(error) if is_needed => Err(error.clone()),
        Err(error) => {
            let tensor = error.tensor.as_deref().unwrap_or_default();
            let index = error.index.unwrap_or_default();
            Ok(Some(format!(
                "tensor {tensor}, index {index}: {}",
                error.message
            )))
        }
        Ok(surveyed) => {
            let (df11, left) = (
                df11_bytes(unit, surveyed.code.layout()),
                plan.left_bytes(unit),
            );
            let grows = df11 > left && !is_needed;
            Ok(grows.then(|| format!("as DF11 it would take {df11} bytes instead of {left}")))
        }
    }
}

fn none_remains(plan: &Plan, left: &[LeftUnit]) -> Error {
    let first = left.first();
    let why = first.map_or("", |unit| unit.reason.as_str());
    let error = Error::new(
        Code::NoGain,
        format!(
            "nothing would be gained: every unit would have to stay as it is, this one because {why}"
        ),
    );
    error
        .in_unit(first.map_or("", |unit| unit.name.as_str()))
        .at_path(plan.source.path())
        .hint("Use the file as it is.")
}
