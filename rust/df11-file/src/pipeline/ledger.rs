//! What a job has finished. Everything that becomes final passes through here, as its regions of the file, and is written to the journal.

use super::{facts::SourceFacts, resume::TakenOver};
use crate::{
    error::{Code, Error, Result},
    journal::{Copied, Record, UnitDone},
    output::{FileMap, Output, Region},
    plan::Plan,
    progress::Progress,
    report::{Report, UnitReport},
};

/// The records of a job.
pub struct Ledger<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    file: &'a Output,
    facts: &'a SourceFacts,
    units: Vec<[Region; 6]>,
    passthrough: Vec<Region>,
    reports: Vec<Option<UnitReport>>,
}

impl<'a> Ledger<'a> {
    /// One with what an earlier run has finished.
    pub fn new(
        (plan, progress, file, facts): (&'a Plan, &'a Progress, &'a Output, &'a SourceFacts),
        taken: &TakenOver,
    ) -> Self {
        let units = taken.units.iter().map(Option::as_ref);
        let copied = taken.copied.iter().map(Option::as_ref);
        let done = taken.units.iter().flatten();
        done.for_each(|_| progress.unit_done());
        Self {
            plan,
            progress,
            file,
            facts,
            units: units
                .clone()
                .map(|done| done.map_or_else(Default::default, |done| done.regions))
                .collect(),
            passthrough: copied
                .map(|done| done.map_or_else(Default::default, |done| done.region))
                .collect(),
            reports: units
                .map(|done| done.map(|done| done.report.clone()))
                .collect(),
        }
    }

    /// Takes note of a unit that is written and, where that is asked for, verified: its six tensors in the order of their names, and what
    /// is told about it.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn commit_unit(
        &mut self,
        index: usize,
        regions: [Region; 6],
        report: UnitReport,
    ) -> Result<()> {
        let members = self.plan.units[index].members.iter();
        let source = members.map(|member| self.facts.of(member.tensor)).collect();
        let record = Record::Unit(Box::new(UnitDone {
            regions,
            source,
            report,
        }));
        self.file.note(&record)?;
        self.units[index] = regions;
        if let Record::Unit(done) = record {
            self.reports[index] = Some(done.report);
        }
        self.progress.unit_done();
        Ok(())
    }

    /// Takes note of a passthrough tensor.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn commit_passthrough(&mut self, index: usize, region: Region) -> Result<()> {
        let copied = &self.plan.passthrough[index];
        self.passthrough[index] = region;
        self.file.note(&Record::Copied(Copied {
            tensor: copied.name.clone(),
            region,
            source: self.facts.of(copied.tensor),
        }))
    }

    /// The hashes in file order; adds the units to the report.
    ///
    /// # Errors
    /// `E_INTERNAL` where what was written is not what the header will say.
    pub fn close(self, map: &FileMap, report: &mut Report) -> Result<Vec<u64>> {
        let mut hashes = Vec::new();
        for (entry, offset, region) in map.in_order(&self.units, &self.passthrough) {
            if (region.offset, region.bytes) != (offset, entry.bytes) {
                let message = format!(
                    "{} bytes were written at {}, {} were announced at {offset}",
                    region.bytes, region.offset, entry.bytes
                );
                return Err(Error::new(Code::Internal, message).in_tensor(&entry.name));
            }
            hashes.push(region.hash);
        }
        report.units = self.reports.into_iter().flatten().collect();
        Ok(hashes)
    }
}
