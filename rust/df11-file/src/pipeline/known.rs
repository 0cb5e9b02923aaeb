//! What is known of a job before its steps begin.

use super::{
    facts::SourceFacts,
    reader::ReadTotals,
    resume::{Finished, TakenOver},
    survey::SurveyedUnit,
};
use crate::plan::Plan;

/// What was counted and written before.
pub struct Known {
    /// The units that were counted.
    pub units: Vec<Option<SurveyedUnit>>,
    /// What an interrupted run has written.
    pub taken: TakenOver,
    /// What was read in this run.
    pub read: ReadTotals,
    /// Bytes that went through in this run, as progress counts them.
    pub bytes: u64,
}

impl Known {
    /// What an interrupted run has finished.
    pub fn of(plan: &Plan, mut finished: Finished, facts: &SourceFacts) -> Self {
        let units = finished.counted(plan, facts);
        Self {
            taken: finished.take(plan, &units, facts),
            units,
            read: ReadTotals::default(),
            bytes: 0,
        }
    }
}
