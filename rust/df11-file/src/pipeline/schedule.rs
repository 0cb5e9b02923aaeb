//! What is read from the source, and in which order. Fixed before the first read, so that the reader can run ahead.

use super::known::Known;
use crate::{budget::Budget, plan::Plan};

/// One read into one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Consecutive weights of a unit.
    Unit {
        /// Index of the unit.
        unit: usize,
        /// First weight.
        first: u64,
        /// Number of weights.
        weights: u64,
        /// The first pass over these weights of a job, in which the source is hashed.
        first_pass: bool,
    },
    /// Consecutive elements of a passthrough tensor.
    Passthrough {
        /// Index of the tensor.
        tensor: usize,
        /// First element.
        first: u64,
        /// Number of elements.
        elements: u64,
    },
}

/// The steps of a job. Each step takes its loads in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Count the unit's exponents. `keep` leaves it in memory for the encoding step that follows.
    Survey {
        /// Index of the unit.
        unit: usize,
        /// Keep its spans.
        keep: bool,
    },
    /// Encode the unit, from the kept spans or from loads of its own.
    Encode {
        /// Index of the unit.
        unit: usize,
    },
    /// Give a unit that an interrupted run has finished its place.
    Place {
        /// Index of the unit.
        unit: usize,
    },
    /// Copy a passthrough tensor.
    Copy {
        /// Index of the tensor.
        tensor: usize,
    },
}

/// All steps of a job, in the order of the source's data, without those that are done already.
pub fn steps(plan: &Plan, budget: &Budget, known: &Known) -> Vec<Step> {
    let ahead = plan.surveys_first();
    let survey = |unit: usize| Step::Survey {
        unit,
        keep: !ahead && budget.keeps(plan.units[unit].weights),
    };
    let companions = plan.companions();
    let start_of = |step: &Step| match *step {
        Step::Survey { unit, .. } | Step::Encode { unit } | Step::Place { unit } => {
            unit_start(plan, unit)
        }
        // A unit's file begins with what depends on the unit's sizes: the unit first, which the sort leaves in front.
        Step::Copy { tensor } => companions[tensor].map_or_else(
            || plan.source.header().tensors[plan.passthrough[tensor].tensor].start,
            |unit| unit_start(plan, unit),
        ),
    };
    let is_written = |unit: usize| known.taken.units[unit].is_some();
    let is_surveyed = |unit: usize| known.units[unit].is_some();
    let mut steps: Vec<_> = (0..plan.units.len())
        .map(|unit| {
            if is_written(unit) {
                Step::Place { unit }
            } else {
                Step::Encode { unit }
            }
        })
        .collect();
    let copies = (0..plan.passthrough.len()).filter(|&tensor| known.taken.copied[tensor].is_none());
    steps.extend(copies.map(|tensor| Step::Copy { tensor }));
    steps.sort_by_key(start_of);
    if ahead {
        let surveys = (0..plan.units.len()).filter(|&unit| !is_surveyed(unit));
        return surveys.map(survey).chain(steps).collect();
    }
    let with_survey = |step: Step| match step {
        Step::Encode { unit } => [Some(survey(unit)), Some(step)],
        other => [None, Some(other)],
    };
    steps.into_iter().flat_map(with_survey).flatten().collect()
}

/// The loads that `steps` take.
pub fn loads(plan: &Plan, span_weights: u64, steps: &[Step]) -> Vec<Load> {
    let mut loads = Vec::new();
    let mut kept = None;
    for step in steps {
        match *step {
            Step::Survey { unit, keep } => {
                loads.extend(unit_loads(plan, unit, span_weights, true));
                kept = keep.then_some(unit);
            }
            Step::Encode { unit } if kept == Some(unit) => {}
            Step::Place { .. } => {}
            Step::Encode { unit } => loads.extend(unit_loads(plan, unit, span_weights, false)),
            Step::Copy { tensor } => loads.extend(copy_loads(plan, tensor, span_weights)),
        }
    }
    loads
}

/// Bytes of the buffer that a load fills.
pub fn load_bytes(plan: &Plan, load: &Load) -> u64 {
    match *load {
        Load::Passthrough {
            tensor, elements, ..
        } => elements * plan.passthrough[tensor].dtype.bitsize() as u64 / 8,
        Load::Unit { weights, .. } => weights * 2,
    }
}

fn unit_start(plan: &Plan, unit: usize) -> u64 {
    let starts = plan.units[unit]
        .members
        .iter()
        .map(|member| plan.source.header().tensors[member.tensor].start);
    starts.min().unwrap_or(0)
}

fn unit_loads(
    plan: &Plan,
    unit: usize,
    span_weights: u64,
    first_pass: bool,
) -> impl Iterator<Item = Load> + use<> {
    let spans = cut(plan.units[unit].weights, span_weights);
    spans.map(move |(first, weights)| Load::Unit {
        unit,
        first,
        weights,
        first_pass,
    })
}

fn copy_loads(plan: &Plan, tensor: usize, span_weights: u64) -> impl Iterator<Item = Load> + use<> {
    let copied = &plan.passthrough[tensor];
    let elements = copied.shape.iter().product();
    let spans = cut(
        elements,
        span_weights.saturating_mul(16) / copied.dtype.bitsize() as u64,
    );
    spans.map(move |(first, elements)| Load::Passthrough {
        tensor,
        first,
        elements,
    })
}

/// Runs of at most `longest` of `total` things: first, number.
fn cut(total: u64, longest: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..total.div_ceil(longest)).map(move |run| (run * longest, longest.min(total - run * longest)))
}
