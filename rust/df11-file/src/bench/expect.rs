//! What one compression will need, from rates measured in a moment. The disk is not measured: that would take longer than a look at a file may.

use std::time::Duration;

use serde::Serialize;

use super::{Stop, estimate::bytes_to_read, memory::measure, synthetic};
use crate::{budget::Budget, error::Result, plan::Plan};

/// Enough pieces for many threads.
const WEIGHTS: usize = 8 << 20;
/// Time of one rate.
const EACH: Duration = Duration::from_millis(50);

/// What a compression will need (schema `df11.expectation/1`).
#[derive(Clone, Debug, Serialize)]
pub struct Expectation {
    schema: &'static str,
    /// Worker threads that it would use.
    pub threads: usize,
    /// Memory that it would use at most, in bytes.
    pub memory_budget: u64,
    /// Bytes that it will read.
    pub bytes_to_read: u64,
    /// Bytes that it will write, as far as a header tells.
    pub bytes_to_write: u64,
    /// Time of the processor for encoding, by a rate that was measured just now in memory.
    pub compress_seconds: f64,
    /// The same for verification.
    pub verify_seconds: f64,
}

/// Measures for about two tenths of a second.
///
/// # Errors
/// `E_OPTION` and `E_NO_MEMORY` where the budget of the plan's options cannot be; `E_CANCELLED`.
pub fn expect(plan: &Plan, stop: Stop<'_>) -> Result<Expectation> {
    let largest = plan.units.iter().map(|unit| unit.weights).max();
    let budget = Budget::new(&plan.options, largest.unwrap_or(0))?;
    let rates = measure(
        plan.options.kernel,
        budget.threads,
        (&synthetic(WEIGHTS), WEIGHTS),
        EACH,
        stop,
    )?;
    let weights = plan.unit_bytes() as f64 / 2.0;
    Ok(Expectation {
        schema: "df11.expectation/1",
        threads: budget.threads,
        memory_budget: budget.bytes,
        bytes_to_read: bytes_to_read(plan, &budget),
        bytes_to_write: plan.predicted_bytes(),
        compress_seconds: weights / rates.compress_weights_per_second,
        verify_seconds: weights / rates.verify_weights_per_second,
    })
}
