//! Memory is a promise: how a budget is divided into buffers.

use crate::{
    error::{Code, Error, Result},
    header::MAX_HEADER_BYTES,
    options::Options,
    system,
};

/// Weights of one piece, the grain of parallel work. 512 KiB of source: it stays in a core's L2 cache.
pub const PIECE_WEIGHTS: u64 = 256 * 1024;
/// Smallest budget.
pub const MIN_BUDGET: u64 = 64 << 20;
/// Largest budget that is taken unasked.
const MAX_DEFAULT_BUDGET: u64 = 1 << 30;
/// Program, libraries, stacks, headers, the allocator's slack and reserve.
const FIXED_BYTES: u64 = 24 << 20;
/// Memory that reading a header takes for each of its bytes: at most, where it lists nothing but the shortest tensors.
const BYTES_PER_HEADER_BYTE: u64 = 10;
/// Of what a plan takes, as much as [`FIXED_BYTES`] covers: that of every published model.
const FIXED_PLAN_BYTES: u64 = 8 << 20;
/// One worker: an encoded piece in work, one waiting for its turn, one run of kernel chunks read back, and a border. Codes of 32 bits are the worst case.
const BYTES_PER_THREAD: u64 = 4 << 20;
/// What the threads of a job need besides, in stacks and small things.
const BESIDES: u64 = 10 << 20;
/// Spans at least: several, so that a large unit stays in memory as a whole and the next is read as it goes.
const MIN_SPANS: u64 = 8;
/// Weights of the longest span. Shorter ones would cost more turns; longer ones are given back later, so that more memory is touched.
const MAX_SPAN_WEIGHTS: u64 = 32 * PIECE_WEIGHTS;
/// Spans that are read ahead of a unit that lies in memory as a whole.
const AHEAD: u64 = 2;
/// Counts of one piece, kept between the passes over a unit.
const BYTES_PER_PIECE: u64 = 2048;

/// A budget, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All of it, in bytes.
    pub bytes: u64,
    /// Worker threads.
    pub threads: usize,
    /// Spans that it has room for.
    pub spans: u64,
    /// Weights of one of these parts of a unit that are in memory at a time: whole pieces.
    pub span_weights: u64,
}

impl Budget {
    /// Whether a unit of so many weights stays in memory between counting and encoding.
    pub fn keeps(&self, weights: u64) -> bool {
        weights <= self.span_weights * self.spans
    }

    /// Spans that are of use where the largest unit has so many weights: for two units at a time, one being encoded and one being read.
    pub fn spans_for(&self, largest_unit: u64) -> usize {
        let wanted = 2 * largest_unit.div_ceil(self.span_weights) + AHEAD;
        wanted.clamp(MIN_SPANS, self.spans) as usize
    }

    /// What workers ask for as they go, in bytes. Some of it is asked for in ways that end the program where there is no memory, so it is to be
    /// seen before that there is.
    pub fn for_work(&self) -> u64 {
        self.threads as u64 * BYTES_PER_THREAD + BESIDES
    }

    /// Longest header that is read, in bytes: it may take half of the budget.
    pub fn longest_header(options: &Options) -> u64 {
        let bytes = wanted_bytes(options).max(MIN_BUDGET);
        (bytes / 2 / BYTES_PER_HEADER_BYTE).min(MAX_HEADER_BYTES)
    }

    /// The budget for units of at most `largest_unit` weights, and a short header.
    ///
    /// # Errors
    /// `E_OPTION` for a budget below 64 MiB or no threads.
    pub fn new(options: &Options, largest_unit: u64) -> Result<Self> {
        Self::for_plan(options, largest_unit, 0)
    }

    /// The budget beside a plan that takes `plan_bytes`.
    ///
    /// # Errors
    /// `E_OPTION` for a budget below 64 MiB or no threads; `E_NO_MEMORY` where the plan or the largest unit needs more.
    pub fn for_plan(options: &Options, largest_unit: u64, plan_bytes: u64) -> Result<Self> {
        let bytes = wanted_bytes(options);
        if bytes < MIN_BUDGET {
            let message = format!("a memory budget of {bytes} bytes is too small");
            return Err(Error::new(Code::Option, message).hint("Allow at least 64 MiB."));
        }
        let wanted = options.threads.unwrap_or_else(system::cores);
        if wanted == 0 {
            return Err(
                Error::new(Code::Option, "no threads were allowed").hint("Allow at least one.")
            );
        }
        let plan_bytes = plan_bytes.saturating_sub(FIXED_PLAN_BYTES);
        let room = (bytes - FIXED_BYTES).saturating_sub(plan_bytes);
        let threads = (wanted as u64).min((room / 2 / BYTES_PER_THREAD).max(1));
        let counts = largest_unit.div_ceil(PIECE_WEIGHTS) * BYTES_PER_PIECE;
        let piece = PIECE_WEIGHTS * 2 + BYTES_PER_PIECE;
        let spans = room
            .checked_sub(threads * BYTES_PER_THREAD + counts)
            .filter(|spans| *spans >= MIN_SPANS * piece);
        let spans = spans.ok_or_else(|| {
            let message = "the list of tensors and the largest unit need a larger memory budget";
            Error::new(Code::NoMemory, message).hint("Raise it.")
        })?;
        let pieces = (spans / MIN_SPANS / piece).min(MAX_SPAN_WEIGHTS / PIECE_WEIGHTS);
        Ok(Self {
            bytes,
            threads: threads as usize,
            spans: spans / (pieces * piece),
            span_weights: pieces * PIECE_WEIGHTS,
        })
    }
}

/// What the user allows, or a share of what there is.
fn wanted_bytes(options: &Options) -> u64 {
    options
        .max_memory
        .unwrap_or_else(|| unasked(system::available_memory()))
}

/// The budget that is taken unasked where so many bytes are free.
fn unasked(available: u64) -> u64 {
    (available / 4).clamp(MIN_BUDGET, MAX_DEFAULT_BUDGET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn budgets_that_are_taken_unasked() {
        // Of a machine of 2 GiB, three quarters are hardly ever free.
        for (available, budget) in [(0, 64), (256, 64), (1536, 384), (2048, 512), (65536, 1024)] {
            assert_eq!(unasked(available * MIB), budget * MIB, "{available} MiB");
        }
    }

    #[test]
    fn many_cores_share_the_budget() {
        for threads in [1, 16, 64, 256] {
            let options = Options {
                threads: Some(threads),
                max_memory: Some(256 * MIB),
                ..Options::default()
            };
            let budget = Budget::new(&options, 340_000_000).unwrap();
            assert!(budget.threads == threads.min(29), "{budget:?}");
            let workers = budget.threads as u64 * BYTES_PER_THREAD;
            let spans = budget.spans * budget.span_weights * 2;
            assert!(workers + spans <= 232 * MIB, "{budget:?}");
            assert!(
                spans >= 80 * MIB,
                "what is read ahead is not given up for threads"
            );
        }
    }
}
