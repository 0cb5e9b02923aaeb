//! What the rates let expect of one model.

use serde::Serialize;

use super::{disk::Transfer, memory::MemoryRates};
use crate::{budget::Budget, plan::Plan, report::text};

/// What a compression waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Reading the source.
    Reading,
    /// Encoding, and decoding where it verifies.
    Computing,
    /// Writing and flushing the result.
    Writing,
}

/// A range of time. Reading, computing and writing overlap: the least is the slowest of them alone, the most is one after the other.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimeRange {
    /// Where they overlap wholly.
    pub least_seconds: f64,
    /// Where they do not overlap at all.
    pub most_seconds: f64,
    /// The slowest of them.
    pub limit: Limit,
}

/// The estimate for one model.
#[derive(Debug, Serialize)]
pub struct Estimate {
    /// The source file.
    pub source: String,
    /// Architecture id.
    pub architecture: String,
    /// Its name for people.
    pub architecture_name: String,
    /// Size of the source file.
    pub source_bytes: u64,
    /// Expected size of the result.
    pub predicted_bytes: u64,
    /// Bytes that will be asked from the source: a unit that does not fit the memory budget is read twice.
    pub bytes_to_read: u64,
    /// With `--verify off`.
    pub without_verification: TimeRange,
    /// With `--verify full`.
    pub with_verification: TimeRange,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Estimate {
    /// The estimate for a plan whose result would be written where `write` was measured.
    pub(super) fn new(
        plan: &Plan,
        budget: &Budget,
        rates: &MemoryRates,
        read: &Transfer,
        write: &Transfer,
    ) -> Self {
        let weights = plan.unit_bytes() as f64 / 2.0;
        let compress = weights / rates.compress_weights_per_second;
        let verify = weights / rates.verify_weights_per_second;
        let bytes_to_read = bytes_to_read(plan, budget);
        let reading = bytes_to_read as f64 / read.bytes_per_second.max(1.0);
        let writing = plan.predicted_bytes() as f64 / write.bytes_per_second.max(1.0);
        Self {
            source: text(plan.source.path()),
            architecture: plan.architecture.id.clone(),
            architecture_name: plan.architecture.name.clone(),
            source_bytes: plan.source.identity().bytes,
            predicted_bytes: plan.predicted_bytes(),
            bytes_to_read,
            without_verification: TimeRange::of(reading, compress, writing),
            with_verification: TimeRange::of(reading, compress + verify, writing),
            notes: plan.notes.clone(),
        }
    }
}

impl TimeRange {
    fn of(reading: f64, computing: f64, writing: f64) -> Self {
        let stages = [
            (reading, Limit::Reading),
            (computing, Limit::Computing),
            (writing, Limit::Writing),
        ];
        let slowest = |a: (f64, Limit), b: (f64, Limit)| if b.0 > a.0 { b } else { a };
        let (least_seconds, limit) = stages.into_iter().fold(stages[0], slowest);
        Self {
            least_seconds,
            most_seconds: reading + computing + writing,
            limit,
        }
    }
}

/// Bytes that a compression asks from its source.
pub(super) fn bytes_to_read(plan: &Plan, budget: &Budget) -> u64 {
    let tensors = &plan.source.header().tensors;
    let units = plan.units.iter().map(|unit| {
        let bytes = unit
            .members
            .iter()
            .map(|member| tensors[member.tensor].bytes());
        let twice = !budget.keeps(unit.weights) || plan.surveys_first();
        bytes.sum::<u64>() * if twice { 2 } else { 1 }
    });
    let copied = plan.passthrough.iter();
    units.sum::<u64>()
        + copied
            .map(|copied| tensors[copied.tensor].bytes())
            .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stage_is_the_least_time() {
        for (stages, limit) in [
            ([3.0, 1.0, 2.0], Limit::Reading),
            ([1.0, 3.0, 2.0], Limit::Computing),
            ([1.0, 2.0, 3.0], Limit::Writing),
        ] {
            let range = TimeRange::of(stages[0], stages[1], stages[2]);
            assert_eq!(range.limit, limit);
            assert!((range.least_seconds - 3.0).abs() < 1e-9);
            assert!((range.most_seconds - 6.0).abs() < 1e-9);
        }
    }
}
