//! The one thread that brings the source into memory, spans ahead of the work: read, converted, hashed, counted.

use std::mem;

use crossbeam_channel::Sender;
use df11_codec::ExponentHistogram;

use super::{
    facts::SourceFacts,
    fetch::{Fetcher, Run, Totals},
    no_memory,
    pool::SpanPool,
    schedule::Load,
    span::{Span, SpanMemory},
};
use crate::{
    budget::PIECE_WEIGHTS, changes::Changes, convert::Conversion, error::Result, fault, hash::Xxh3,
    journal::TensorFacts, options::Io, plan::Plan, progress::Progress, turns::Turns,
};

/// What the reader knows at the end.
#[derive(Debug, Default)]
pub struct ReadTotals {
    /// Bytes.
    pub totals: Totals,
    /// The way in which it ended up reading.
    pub io: Io,
}

/// Reads a job's loads in order.
pub struct Reader<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    fetcher: Fetcher<'a>,
    /// Tensors of which a part was hashed.
    open: Vec<OpenTensor>,
    /// Told of each tensor that was read to its end.
    facts: &'a SourceFacts,
}

/// Stops the reader of a job that ends before its time, whatever ends it: it would wait for spans that nobody gives back any more, or finish what
/// it is reading.
pub struct StopReader<'a>(pub &'a Progress);

impl StopReader<'_> {
    /// Stops it unless the job has come to its end.
    pub fn unless(self, is_done: bool) {
        if is_done {
            mem::forget(self);
        }
    }
}

impl Drop for StopReader<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A tensor of which a part was hashed.
struct OpenTensor {
    tensor: usize,
    /// Bytes so far.
    bytes: u64,
    hasher: Xxh3,
    /// What rounding did to them.
    changes: Changes,
}

/// A part of a load: consecutive bytes of a source tensor.
struct Part {
    tensor: usize,
    /// Where they begin in the source's data.
    offset: u64,
    bytes: u64,
    conversion: Option<Conversion>,
}

impl<'a> Reader<'a> {
    /// A reader of the plan's source.
    pub fn new(
        plan: &'a Plan,
        progress: &'a Progress,
        facts: &'a SourceFacts,
        turns: &'a Turns,
    ) -> Self {
        Self::with_rate((plan, progress, facts, turns), plan.options.max_rate)
    }

    fn with_rate(
        (plan, progress, facts, turns): (&'a Plan, &'a Progress, &'a SourceFacts, &'a Turns),
        max_rate: Option<u64>,
    ) -> Self {
        Self {
            plan,
            progress,
            fetcher: Fetcher::new((&plan.source, turns), progress, &plan.options, max_rate),
            open: Vec::new(),
            facts,
        }
    }

    /// Fills memory of the pool and sends it to `filled`, until all loads are done, one fails, or nobody listens.
    pub fn run(
        mut self,
        loads: &[Load],
        mut pool: SpanPool,
        filled: &Sender<Result<Span>>,
    ) -> ReadTotals {
        for load in loads {
            let Ok(mut span) = pool.span(|| filled.len(), self.progress) else {
                break;
            };
            let outcome = self.load(load, span.memory()).map(|()| span);
            let failed = outcome.is_err();
            pool.filled(outcome.as_ref().map_or(0, |span| span.bytes().len()));
            if filled.send(outcome).is_err() || failed {
                break;
            }
        }
        ReadTotals {
            io: self.fetcher.io(),
            totals: self.fetcher.totals,
        }
    }

    fn load(&mut self, load: &Load, memory: &mut SpanMemory) -> Result<()> {
        fault::here("read");
        let plan = self.plan;
        let SpanMemory { bytes, counts } = memory;
        counts.clear();
        match *load {
            Load::Passthrough {
                tensor,
                first,
                elements,
            } => {
                let copied = &plan.passthrough[tensor];
                let info = &plan.source.header().tensors[copied.tensor];
                let bits = info.dtype.bitsize() as u64;
                let length = (elements * copied.dtype.bitsize() as u64 / 8) as usize;
                bytes.resize(length).map_err(|error| no_memory(&error))?;
                let part = Part {
                    tensor: copied.tensor,
                    offset: info.start + first * bits / 8,
                    bytes: elements * bits / 8,
                    conversion: copied.conversion,
                };
                self.part(&part, (bytes, 0), None, true)
            }
            Load::Unit {
                unit,
                first,
                weights,
                first_pass,
            } => {
                bytes
                    .resize(weights as usize * 2)
                    .map_err(|error| no_memory(&error))?;
                if first_pass {
                    let pieces = weights.div_ceil(PIECE_WEIGHTS) as usize;
                    counts.resize(pieces, ExponentHistogram::default());
                }
                for (at, part) in parts(plan, unit, first, weights) {
                    let length = part
                        .conversion
                        .map_or(part.bytes, |kind| kind.converted_bytes(part.bytes));
                    let target = &mut bytes[at as usize..][..length as usize];
                    let counts = first_pass.then_some(&mut counts[..]);
                    self.part(&part, (target, at as usize), counts, first_pass)?;
                }
                Ok(())
            }
        }
    }

    /// Reads a part into `target`, which begins at byte `at` of the span.
    fn part(
        &mut self,
        part: &Part,
        (target, at): (&mut [u8], usize),
        counts: Option<&mut [ExponentHistogram]>,
        hash: bool,
    ) -> Result<()> {
        let open = hash.then(|| {
            let mut open = self.open.iter();
            let known = open.position(|open| open.tensor == part.tensor);
            known.unwrap_or_else(|| {
                self.open.push(OpenTensor {
                    tensor: part.tensor,
                    bytes: 0,
                    hasher: Xxh3::new(),
                    changes: Changes::default(),
                });
                self.open.len() - 1
            })
        });
        self.fetcher.fetch(Run {
            offset: part.offset,
            conversion: part.conversion,
            target,
            at,
            hasher: open.map(|open| &mut self.open[open].hasher),
            counts,
        })?;
        if let Some(open) = open {
            let changes = mem::take(&mut self.fetcher.totals.changes);
            let known = &mut self.open[open];
            known.changes.add(&changes);
            known.bytes += part.bytes;
            if known.bytes == self.plan.source.header().tensors[part.tensor].bytes() {
                let known = self.open.swap_remove(open);
                let facts = TensorFacts {
                    xxh3: Some(known.hasher.digest()),
                    changes: (known.changes.values > 0).then_some(known.changes),
                };
                self.facts.set(part.tensor, facts);
            }
        }
        Ok(())
    }
}

/// Reads consecutive weights of a unit as BF16, outside the schedule.
///
/// # Errors
/// Those of the source.
pub fn read_weights(
    plan: &Plan,
    unit: usize,
    first: u64,
    weights: u64,
    memory: &mut SpanMemory,
) -> Result<()> {
    let load = Load::Unit {
        unit,
        first,
        weights,
        first_pass: false,
    };
    let (progress, facts, turns) = Default::default();
    Reader::with_rate((plan, &progress, &facts, &turns), None).load(&load, memory)
}

/// The parts of consecutive weights of a unit and the byte of the span at which each begins, in the order of the source's data.
fn parts(plan: &Plan, unit: usize, first: u64, weights: u64) -> Vec<(u64, Part)> {
    let members = &plan.units[unit].members;
    let mut parts = Vec::with_capacity(members.len());
    let mut start = 0;
    for member in members {
        let from = first.max(start);
        let to = (first + weights).min(start + member.weights);
        if from < to {
            let info = &plan.source.header().tensors[member.tensor];
            let width = info.dtype.bitsize() as u64 / 8;
            let part = Part {
                tensor: member.tensor,
                offset: info.start + (from - start) * width,
                bytes: (to - from) * width,
                conversion: member.conversion,
            };
            parts.push(((from - first) * 2, part));
        }
        start += member.weights;
    }
    parts.sort_by_key(|(_, part)| part.offset);
    parts
}
