//! What an interrupted run of the same job has finished: read from its journal, proven by its hashes, taken over.

use std::collections::HashMap;

use df11_codec::{ExponentHistogram, PieceStart, UnitCode, UnitLayout, limits::CHUNK_BYTES};

use super::{facts::SourceFacts, survey::SurveyedUnit};
use crate::{
    budget::{Budget, PIECE_WEIGHTS},
    error::Result,
    hash::Xxh3,
    journal::{Copied, Counted, Fingerprint, Record, UnitDone},
    ordered::in_order,
    output::{Output, Region, left_was_replaced},
    plan::{Passthrough, Plan, UnitPlan},
    progress::{Phase, Progress},
};

/// Bytes that are hashed at a time.
const READ_BYTES: u64 = 1 << 20;

/// What is finished of a job, by name.
#[derive(Default)]
pub struct Finished {
    counted: HashMap<String, Counted>,
    units: HashMap<String, UnitDone>,
    copied: HashMap<String, Copied>,
}

/// What is finished, by the plan's units and passthrough tensors.
pub struct TakenOver {
    /// Units.
    pub units: Vec<Option<UnitDone>>,
    /// Passthrough tensors.
    pub copied: Vec<Option<Copied>>,
}

/// Goes on with what an interrupted run has `left`, as far as it is of the same job and proven, or begins anew; a sentence says which, where anything was
/// left.
///
/// # Errors
/// Those of the file; `E_CANCELLED`.
pub fn begin(
    (plan, budget, file): (&Plan, &Budget, &Output),
    left: Option<Vec<Record>>,
    progress: &Progress,
) -> Result<(Finished, Option<String>)> {
    let fingerprint = Fingerprint::of(plan);
    let anew = |note| {
        file.restart()?;
        file.note(&Record::Job(Box::new(fingerprint.clone())))?;
        Ok((Finished::default(), note))
    };
    let Some(records) = left else {
        return anew(None);
    };
    let found = if plan.options.no_resume {
        Err("a start from the beginning was asked for")
    } else {
        Finished::read(records, &fingerprint)
    };
    match found {
        Ok(mut finished) => {
            file.go_on()?;
            let lost = finished.prove(file, budget.threads, progress)?;
            let note = finished.sentence(lost);
            Ok((finished, Some(note)))
        }
        Err(why) => {
            let replaced = left_was_replaced(plan.folder.is_some());
            anew(Some(format!("{replaced}: {why}")))
        }
    }
}

impl Finished {
    /// What a journal tells, where it is of the job with this fingerprint; otherwise why it is of no use.
    fn read(records: Vec<Record>, wanted: &Fingerprint) -> std::result::Result<Self, &'static str> {
        let (mut job, mut found) = (None, Self::default());
        for record in records {
            match record {
                Record::Job(fingerprint) => (job, found) = (Some(fingerprint), Self::default()),
                Record::Counted(counted) => {
                    found.counted.insert(counted.unit.clone(), counted);
                }
                Record::Unit(unit) => {
                    found.units.insert(unit.report.name.clone(), *unit);
                }
                Record::Copied(copied) => {
                    found.copied.insert(copied.tensor.clone(), copied);
                }
                Record::Run(_) | Record::Files(_) | Record::Header(_) => {}
            }
        }
        let job = job.ok_or("it has no journal that can be read")?;
        wanted.differs(&job).map_or(Ok(found), Err)
    }

    /// Reads back everything that is said to be written and forgets what does not have its hash; so many parts were forgotten.
    fn prove(&mut self, file: &Output, threads: usize, progress: &Progress) -> Result<usize> {
        let units = self.units.values().flat_map(|unit| &unit.regions);
        let copied = self.copied.values().map(|copied| &copied.region);
        let regions: Vec<Region> = units.chain(copied).copied().collect();
        progress.set_phase(Phase::Checking);
        progress.set_total(regions.iter().map(|region| region.bytes).sum(), 1);
        let mut sound = Vec::with_capacity(regions.len());
        in_order(
            regions.len() as u64,
            threads,
            vec![(Vec::new(), false); threads + 2],
            |index, (buffer, is_sound): &mut (Vec<u8>, bool)| {
                let region = &regions[index as usize];
                *is_sound = has_hash(file, region, buffer, progress)?;
                Ok(())
            },
            |_, (_, is_sound)| {
                sound.push(*is_sound);
                Ok(())
            },
        )?;
        progress.begin_again();
        let before = self.units.len() + self.copied.len();
        let mut sound = sound.into_iter();
        // In the order in which the regions were listed; all six are asked for, whatever the first ones are.
        self.units.retain(|_, unit| {
            let found: Vec<_> = sound.by_ref().take(unit.regions.len()).collect();
            found.iter().all(|is_sound| *is_sound)
        });
        self.copied.retain(|_, _| sound.next().unwrap_or(false));
        Ok(before - self.units.len() - self.copied.len())
    }

    fn sentence(&self, lost: usize) -> String {
        let (units, tensors) = (self.units.len(), self.copied.len());
        let lost = match lost {
            0 => String::new(),
            lost => format!("; {lost} others did not have their hashes and are made again"),
        };
        format!(
            "went on from an interrupted run: {units} units and {tensors} copied tensors were finished and had their hashes{lost}"
        )
    }

    /// The counts of the plan's units, as far as they are known.
    pub fn counted(&mut self, plan: &Plan, facts: &SourceFacts) -> Vec<Option<SurveyedUnit>> {
        let units = plan.units.iter().map(|unit| {
            let counted = self.counted.get(&unit.name)?;
            let surveyed = surveyed(counted, unit)?;
            for (member, known) in unit.members.iter().zip(&counted.source) {
                facts.set(member.tensor, *known);
            }
            Some(surveyed)
        });
        units.collect()
    }

    /// What is finished of a plan. Where units are counted first, only those that are.
    pub fn take(
        mut self,
        plan: &Plan,
        counted: &[Option<SurveyedUnit>],
        facts: &SourceFacts,
    ) -> TakenOver {
        let units = plan.units.iter().zip(counted).map(|(unit, counted)| {
            let done = self.units.remove(&unit.name)?;
            let is_counted = counted.is_some() || !plan.surveys_first();
            (is_counted && fits(&done, unit)).then_some(done)
        });
        let units: Vec<_> = units.collect();
        for (unit, done) in plan.units.iter().zip(&units) {
            let known = done.iter().flat_map(|done| &done.source);
            for (member, known) in unit.members.iter().zip(known) {
                facts.set(member.tensor, *known);
            }
        }
        let copied = plan.passthrough.iter().map(|tensor| {
            let done = self.copied.remove(&tensor.name)?;
            (done.region.bytes == tensor.bytes).then_some(done)
        });
        let copied: Vec<_> = copied.collect();
        for (tensor, done) in plan.passthrough.iter().zip(&copied) {
            if let Some(done) = done {
                facts.set(tensor.tensor, done.source);
            }
        }
        TakenOver { units, copied }
    }
}

impl TakenOver {
    /// Its bytes in the result.
    pub fn written(&self) -> u64 {
        let units = self.units.iter().flatten().flat_map(|unit| &unit.regions);
        let copied = self.copied.iter().flatten().map(|copied| &copied.region);
        units.chain(copied).map(|region| region.bytes).sum()
    }

    /// Bytes of the source that need not be read any more, as the result holds them.
    pub fn bytes(&self, plan: &Plan) -> u64 {
        let of = |unit: &UnitPlan| unit.weights * 2;
        let units = plan.units.iter().zip(&self.units);
        let units = units.filter_map(|(unit, done)| done.as_ref().map(|_| of(unit)));
        let copied = plan.passthrough.iter().zip(&self.copied);
        let of = |tensor: &Passthrough| tensor.bytes;
        let copied = copied.filter_map(|(tensor, done)| done.as_ref().map(|_| of(tensor)));
        units.chain(copied).sum()
    }
}

/// The sizes of a finished unit's tensors.
pub fn layout(done: &UnitDone) -> UnitLayout {
    let [codes, gaps, luts, positions, sign_mantissa, _] = done.regions.map(|region| region.bytes);
    UnitLayout {
        weights: sign_mantissa,
        bits: 0,
        lut_rows: luts / 256,
        encoded_exponent_bytes: codes,
        chunks: codes.div_ceil(CHUNK_BYTES),
        gaps_bytes: gaps,
        position_entries: positions / 4,
    }
}

fn fits(done: &UnitDone, unit: &UnitPlan) -> bool {
    let members = unit.members.len();
    let [_, _, _, _, sign_mantissa, split_positions] = done.regions.map(|region| region.bytes);
    done.source.len() == members
        && sign_mantissa == unit.weights
        && split_positions == (members as u64 - 1) * 8
}

/// A unit's code, from its counts; none where they are not this unit's.
fn surveyed(counted: &Counted, unit: &UnitPlan) -> Option<SurveyedUnit> {
    let mut counts = [0; 256];
    for &(exponent, count) in &counted.exponents {
        counts[usize::from(exponent)] = count;
    }
    let histogram = ExponentHistogram::from_counts(counts);
    let is_this = histogram.total() == unit.weights
        && counts[usize::from(counted.last)] > 0
        && counted.bits.len() as u64 == unit.weights.div_ceil(PIECE_WEIGHTS)
        && counted.source.len() == unit.members.len();
    let make = if counted.two_bit {
        UnitCode::two_bit
    } else {
        UnitCode::new
    };
    let code = is_this.then(|| make(&histogram, counted.last));
    let code = code?.ok()?;
    let bits = counted.bits.iter();
    let total = bits.copied().try_fold(0, u64::checked_add)?;
    (total == code.layout().bits).then(|| SurveyedUnit {
        starts: starts(&counted.bits),
        code,
    })
}

fn starts(bits: &[u64]) -> Vec<PieceStart> {
    let mut bit = 0;
    let pieces = (0..).zip(bits).map(|(index, piece)| {
        let start = PieceStart {
            weight: index * PIECE_WEIGHTS,
            bit,
            is_last: index + 1 == bits.len() as u64,
        };
        bit += piece;
        start
    });
    pieces.collect()
}

/// Whether a region of what is written has its hash. One that cannot be read has not.
fn has_hash(
    file: &Output,
    region: &Region,
    buffer: &mut Vec<u8>,
    progress: &Progress,
) -> Result<bool> {
    if !file.holds(region)? {
        return Ok(false);
    }
    let (mut at, mut hasher) = (0, Xxh3::new());
    while at < region.bytes {
        progress.check_cancelled()?;
        buffer.resize(READ_BYTES.min(region.bytes - at) as usize, 0);
        if file.read(buffer, region.offset + at).is_err() {
            return Ok(false);
        }
        hasher.update(buffer);
        progress.add_stage(buffer.len() as u64);
        at += buffer.len() as u64;
    }
    Ok(hasher.digest() == region.hash)
}
