//! A compression in a thread of its own.

use std::{ops::Deref, sync::Arc};

use crate::{error::Result, pipeline::compress, plan::Plan, report::Report, task::Task};

/// A running or ended compression. Dropping it asks it to stop.
#[derive(Debug)]
pub struct Job {
    plan: Arc<Plan>,
    task: Task<Report>,
}

impl Job {
    /// Starts `plan` and returns at once.
    ///
    /// # Errors
    /// `E_NO_MEMORY` where no thread can be started.
    pub fn start(plan: Plan) -> Result<Self> {
        let plan = Arc::new(plan);
        let shared = Arc::clone(&plan);
        let task = Task::start(plan.options.low_priority, move |progress| {
            compress(&shared, progress)
        })?;
        Ok(Self { plan, task })
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Deref for Job {
    type Target = Task<Report>;

    fn deref(&self) -> &Task<Report> {
        &self.task
    }
}
