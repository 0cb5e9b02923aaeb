//! The one thread that reads the source, a buffer ahead of the work.

use std::{
    collections::HashMap,
    sync::mpsc::{Receiver, SyncSender},
    thread,
    time::{Duration, Instant},
};

use xxhash_rust::xxh3::Xxh3;

use super::schedule::Load;
use crate::{convert::Conversion, error::Result, plan::Plan, progress::Progress};

/// Bytes per read call: large enough for any disk, small enough to stop at once.
const READ_BYTES: usize = 1 << 20;
/// Longest sleep of the brake, so that a request to stop is seen.
const NAP: Duration = Duration::from_millis(50);

/// What a load fills: BF16 weights of a unit, or the bytes of a passthrough tensor as the result holds them.
pub type Span = Vec<u8>;

/// What the reader knows at the end.
#[derive(Debug, Default)]
pub struct ReadTotals {
    /// Bytes asked from the source.
    pub bytes: u64,
    /// Hashes of the source's tensors, by index.
    pub hashes: HashMap<usize, u64>,
    /// Values that a conversion changed.
    pub changed_values: u64,
}

/// Reads a job's loads in order.
pub struct Reader<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    hashers: HashMap<usize, Xxh3>,
    totals: ReadTotals,
    raw: Vec<u8>,
    started: Instant,
    max_rate: Option<u64>,
}

impl<'a> Reader<'a> {
    /// A reader of the plan's source.
    pub fn new(plan: &'a Plan, progress: &'a Progress) -> Self {
        let (hashers, totals) = (HashMap::new(), ReadTotals::default());
        Self {
            plan,
            progress,
            hashers,
            totals,
            raw: Vec::new(),
            started: Instant::now(),
            max_rate: plan.options.max_rate,
        }
    }

    /// Fills buffers that come back through `free` and sends them to `filled`, until all loads are done, one fails, or nobody listens.
    pub fn run(
        mut self,
        loads: &[Load],
        free: &Receiver<Span>,
        filled: &SyncSender<Result<Span>>,
    ) -> ReadTotals {
        for &load in loads {
            let Ok(mut bytes) = free.recv() else { break };
            let outcome = self.load(&load, &mut bytes).map(|()| bytes);
            let failed = outcome.is_err();
            if filled.send(outcome).is_err() || failed {
                break;
            }
        }
        self.totals.hashes.extend(
            self.hashers
                .into_iter()
                .map(|(tensor, hasher)| (tensor, hasher.digest())),
        );
        self.totals
    }

    fn load(&mut self, load: &Load, bytes: &mut Vec<u8>) -> Result<()> {
        let plan = self.plan;
        match *load {
            Load::Passthrough {
                tensor,
                first,
                elements,
            } => {
                let copied = &plan.passthrough[tensor];
                let info = &plan.source.header().tensors[copied.tensor];
                let bits = info.dtype.bitsize() as u64;
                let length = elements * copied.dtype.bitsize() as u64 / 8;
                bytes.resize(length as usize, 0);
                let range = (info.start + first * bits / 8, elements * bits / 8);
                self.read(copied.tensor, range, copied.conversion, bytes, true)
            }
            Load::Unit {
                unit,
                first,
                weights,
                first_pass,
            } => {
                bytes.resize(weights as usize * 2, 0);
                for part in parts(plan, unit, first, weights) {
                    let member = &plan.units[unit].members[part.member];
                    let info = &plan.source.header().tensors[member.tensor];
                    let width = info.dtype.bitsize() as u64 / 8;
                    let range = (info.start + part.first * width, part.weights * width);
                    let place = &mut bytes[part.at as usize * 2..][..part.weights as usize * 2];
                    self.read(member.tensor, range, member.conversion, place, first_pass)?;
                }
                Ok(())
            }
        }
    }

    /// Reads `range` (offset, bytes) of the source's data into `target`, converted.
    fn read(
        &mut self,
        tensor: usize,
        range: (u64, u64),
        conversion: Option<Conversion>,
        target: &mut [u8],
        hash: bool,
    ) -> Result<()> {
        let (mut offset, end) = (range.0, range.0 + range.1);
        let mut target = target;
        while offset < end {
            self.progress.check_cancelled()?;
            let length = READ_BYTES.min((end - offset) as usize);
            let written = match conversion {
                None => {
                    self.plan.source.read(&mut target[..length], offset)?;
                    length
                }
                Some(conversion) => {
                    self.raw.resize(length, 0);
                    self.plan.source.read(&mut self.raw, offset)?;
                    let written = conversion.converted_bytes(length as u64) as usize;
                    let changed = conversion.apply(&self.raw, &mut target[..written]);
                    self.totals.changed_values += if hash { changed } else { 0 };
                    written
                }
            };
            let (done, rest) = target.split_at_mut(written);
            if hash {
                let read: &[u8] = if conversion.is_some() {
                    &self.raw
                } else {
                    done
                };
                self.hashers.entry(tensor).or_default().update(read);
            }
            self.progress.add_stage(written as u64);
            target = rest;
            offset += length as u64;
            self.totals.bytes += length as u64;
            self.brake()?;
        }
        Ok(())
    }

    /// Waits as long as the allowed rate asks for.
    fn brake(&self) -> Result<()> {
        let Some(rate) = self.max_rate else {
            return Ok(());
        };
        let due = Duration::from_secs_f64(self.totals.bytes as f64 / rate.max(1) as f64);
        while let Some(left) = due
            .checked_sub(self.started.elapsed())
            .filter(|left| !left.is_zero())
        {
            self.progress.check_cancelled()?;
            thread::sleep(left.min(NAP));
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
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let unlimited = Progress::default();
    let mut reader = Reader::new(plan, &unlimited);
    reader.max_rate = None;
    reader.load(
        &Load::Unit {
            unit,
            first,
            weights,
            first_pass: false,
        },
        bytes,
    )
}

/// A run of one member's weights within a load.
struct Part {
    member: usize,
    /// First weight within the member.
    first: u64,
    weights: u64,
    /// Where it goes, in weights from the start of the load.
    at: u64,
}

/// The parts of a load, in the order of the source's data.
fn parts(plan: &Plan, unit: usize, first: u64, weights: u64) -> Vec<Part> {
    let members = &plan.units[unit].members;
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, member) in members.iter().enumerate() {
        let from = first.max(start);
        let to = (first + weights).min(start + member.weights);
        if from < to {
            parts.push(Part {
                member: index,
                first: from - start,
                weights: to - from,
                at: from - first,
            });
        }
        start += member.weights;
    }
    parts.sort_by_key(|part| plan.source.header().tensors[members[part.member].tensor].start);
    parts
}
