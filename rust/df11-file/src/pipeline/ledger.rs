//! What a job has finished. Everything that becomes final passes through here, as its regions of the file.

use crate::{
    error::{Code, Error, Result},
    output::{FileMap, Region},
    plan::Plan,
    progress::Progress,
    report::{Report, UnitReport},
};

/// The records of a job.
pub struct Ledger<'a> {
    progress: &'a Progress,
    units: Vec<[Region; 6]>,
    passthrough: Vec<Region>,
    reports: Vec<Option<UnitReport>>,
}

impl<'a> Ledger<'a> {
    /// An empty one.
    pub fn new(plan: &Plan, progress: &'a Progress) -> Self {
        Self {
            progress,
            units: vec![[Region::default(); 6]; plan.units.len()],
            passthrough: vec![Region::default(); plan.passthrough.len()],
            reports: plan.units.iter().map(|_| None).collect(),
        }
    }

    /// Takes note of a unit that is written and, where that is asked for, verified: its six tensors in the order of their names, and what
    /// is told about it.
    pub fn commit_unit(&mut self, index: usize, regions: [Region; 6], report: UnitReport) {
        self.units[index] = regions;
        self.reports[index] = Some(report);
        self.progress.unit_done();
    }

    /// Takes note of a passthrough tensor.
    pub fn commit_passthrough(&mut self, index: usize, region: Region) {
        self.passthrough[index] = region;
    }

    /// The hashes in file order; adds the units to the report.
    ///
    /// # Errors
    /// `E_INTERNAL` where what was written is not what the header will say.
    pub fn close(self, map: &FileMap, report: &mut Report) -> Result<Vec<u64>> {
        let mut end = map.file_bytes() - map.data_bytes();
        let mut hashes = Vec::new();
        for (entry, region) in map
            .tensors()
            .zip(map.in_order(&self.units, &self.passthrough))
        {
            if (region.offset, region.bytes) != (end, entry.bytes) {
                let message = format!(
                    "{} bytes were written at {}, {} were announced at {end}",
                    region.bytes, region.offset, entry.bytes
                );
                return Err(Error::new(Code::Internal, message).in_tensor(&entry.name));
            }
            end += region.bytes;
            hashes.push(region.hash);
        }
        report.units = self.reports.into_iter().flatten().collect();
        Ok(hashes)
    }
}
