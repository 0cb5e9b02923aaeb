//! The steps of a job, done in order: survey and encode a unit, or copy a tensor.

use std::collections::VecDeque;

use super::{
    facts::SourceFacts, flow::Flow, gain::Gain, known::Known, resume::layout, schedule::Step,
    span::Span, survey::SurveyedUnit, surveyor::Surveyor, unit::ActiveUnit,
    unit_check::wrong_bytes,
};
use crate::{
    error::{Code, Error, Result},
    fault,
    hash::Xxh3,
    journal::{Record, UnitDone},
    options::{Form, HeaderMode, Verify},
    output::{FileMap, Output, Region, flush::FlushRequests, manifest::Manifest, split_positions},
    plan::Plan,
    progress::{Phase, Progress},
    report::{Report, UnitReport, df11_bytes},
    stored::unit_bytes::decode_tables,
};

/// Bytes of a copied tensor that are written, read back and compared at a time.
const COPY_BYTES: usize = 1 << 20;

/// A job in work.
pub struct Work<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    file: &'a Output,
    /// Told how much was written.
    flush: &'a FlushRequests<'a>,
    flow: Flow<'a>,
    surveyor: Surveyor<'a>,
    gain: Gain<'a>,
    /// The spans of a unit that was surveyed and is encoded next.
    kept: VecDeque<Span>,
    /// Known from the start for a self-describing file, after the last survey for an official one.
    map: Option<FileMap>,
    surveyed: Vec<Option<SurveyedUnit>>,
    /// Units that an interrupted run has written.
    written: Vec<Option<UnitDone>>,
    /// Copied bytes, read back.
    back: Vec<u8>,
}

impl<'a> Work<'a> {
    /// A job of which nothing is done yet but what is `known`.
    ///
    /// # Errors
    /// `E_NO_MEMORY`, `E_NO_GAIN`.
    pub fn new(
        (plan, progress, file, manifest): (&'a Plan, &'a Progress, &'a Output, Option<&Manifest>),
        facts: &'a SourceFacts,
        flush: &'a FlushRequests<'a>,
        flow: Flow<'a>,
        known: Known,
    ) -> Result<Self> {
        let mut gain = Gain::new(plan);
        for (unit, surveyed) in plan.units.iter().zip(&known.units) {
            if let Some(surveyed) = surveyed {
                gain.add(unit, df11_bytes(unit, surveyed.code.layout()))?;
            }
        }
        Ok(Self {
            plan,
            progress,
            file,
            flush,
            flow,
            surveyor: Surveyor::new(plan, progress, facts)?,
            gain,
            kept: VecDeque::new(),
            map: FileMap::begin(plan, manifest.map(|manifest| manifest.header_bytes)),
            surveyed: known.units,
            written: known.taken.units,
            back: Vec::new(),
        })
    }

    /// Does the next step.
    ///
    /// # Errors
    /// The step's refusal or failure.
    pub fn step(&mut self, step: Step) -> Result<()> {
        fault::here("step");
        match step {
            Step::Survey { unit, keep } => self.survey(unit, keep),
            Step::Encode { unit } => self.encode(unit),
            Step::Place { unit } => self.place(unit),
            Step::Copy { tensor } => self.copy(tensor),
        }
    }

    /// The finished map and the hashes in file order; adds the units to the report.
    ///
    /// # Errors
    /// What the last checks find.
    pub fn finish(mut self, report: &mut Report) -> Result<(FileMap, Vec<u64>)> {
        self.flow.drain()?;
        let map = self
            .map
            .ok_or_else(|| Error::new(Code::Internal, "the job ended before its first tensor"))?;
        let hashes = self.flow.ledger.close(&map, report)?;
        Ok((map, hashes))
    }

    fn survey(&mut self, index: usize, keep: bool) -> Result<()> {
        self.progress.set_phase(if self.map.is_some() {
            Phase::Compressing
        } else {
            Phase::Reading
        });
        let keep = keep.then_some(&mut self.kept);
        let starts = self.flow.spares.starts();
        let next = || self.flow.next_span();
        let surveyed = self.surveyor.unit(index, next, keep, starts)?;
        let unit = &self.plan.units[index];
        self.gain
            .add(unit, df11_bytes(unit, surveyed.code.layout()))?;
        if self.plan.surveys_first() {
            let counted = self.surveyor.record(index, &surveyed);
            self.file.note(&Record::Counted(counted))?;
        }
        self.surveyed[index] = Some(surveyed);
        Ok(())
    }

    /// Gives a unit that is written already its place. Those of an official file have theirs.
    fn place(&mut self, index: usize) -> Result<()> {
        self.ready_map()?;
        self.surveyed[index] = None;
        let (Some(done), Some(map)) = (self.written[index].take(), self.map.as_mut()) else {
            return Ok(());
        };
        let plan = self.plan;
        if plan.options.header == HeaderMode::SelfDescribing || plan.form == Form::Folder {
            map.place(plan, index, &layout(&done));
            if !self.plan.surveys_first() {
                self.gain
                    .add(&self.plan.units[index], done.report.df11_bytes)?;
            }
        }
        Ok(())
    }

    fn encode(&mut self, index: usize) -> Result<()> {
        let plan = self.plan;
        let unit = &plan.units[index];
        self.progress.set_phase(Phase::Compressing);
        self.ready_map()?;
        self.progress.enter_unit(unit.number);
        let missing = || Error::new(Code::Internal, "a unit was encoded before it was surveyed");
        let surveyed = self.surveyed[index].take().ok_or_else(missing)?;
        let map = self.map.as_mut().ok_or_else(missing)?;
        if plan.options.header == HeaderMode::SelfDescribing || plan.form == Form::Folder {
            map.place(plan, index, surveyed.code.layout());
        }
        let place = map.place_of(index);
        self.flow.make_room()?;
        let tables = match plan.options.verify {
            Verify::Full => {
                let (kernel, spare) = (plan.options.kernel, self.flow.spares.tables());
                let tables = decode_tables(kernel, spare, surveyed.code.luts());
                Some(tables.map_err(|error| Error::new(Code::Internal, error.to_string()))?)
            }
            Verify::Off => None,
        };
        let reads = if self.kept.is_empty() { 2 } else { 1 };
        let report = UnitReport::new(unit, &surveyed.code, reads);
        let active = self.flow.begin(ActiveUnit {
            index,
            surveyed,
            place,
            split_positions: split_positions(unit),
            tables,
        });
        let mut encoded = 0;
        while encoded < unit.weights {
            let kept = self.kept.pop_front();
            let span = kept.map_or_else(|| self.flow.next_span(), Ok)?;
            let weights = span.bytes().len() as u64 / 2;
            self.flow.span(&active, span, encoded)?;
            encoded += weights;
        }
        self.flow.end(active, report)?;
        self.progress.leave_unit();
        Ok(())
    }

    /// Places everything, once all units of an official file are surveyed.
    fn ready_map(&mut self) -> Result<()> {
        if self.map.is_some() || self.plan.options.header != HeaderMode::Official {
            return Ok(());
        }
        let layouts: Vec<_> = self
            .surveyed
            .iter()
            .flatten()
            .map(|surveyed| *surveyed.code.layout())
            .collect();
        let map = FileMap::official(self.plan, &layouts);
        self.file.check_space(map.file_bytes())?;
        self.map = Some(map);
        Ok(())
    }

    fn copy(&mut self, tensor: usize) -> Result<()> {
        self.progress.set_phase(Phase::Compressing);
        self.ready_map()?;
        let offset = self
            .map
            .as_ref()
            .map_or(0, |map| map.passthrough_offset(tensor));
        let bytes = self.plan.passthrough[tensor].bytes;
        let (mut copied, mut hasher) = (0, Xxh3::new());
        while copied < bytes {
            let span = self.flow.next_span()?;
            // In parts, so that a request to stop is seen in a tensor of any size.
            for part in span.bytes().chunks(COPY_BYTES) {
                self.progress.check_cancelled()?;
                self.file.write(part, offset + copied)?;
                if self.plan.options.verify == Verify::Full {
                    self.compare(tensor, part, offset, copied)?;
                }
                hasher.update(part);
                copied += part.len() as u64;
                self.progress.add_out(part.len() as u64);
                self.progress.skip_stages(part.len() as u64);
            }
            self.flush.written(self.progress.snapshot().bytes_out)?;
        }
        let region = Region {
            offset,
            bytes: copied,
            hash: hasher.digest(),
        };
        self.flow.ledger.commit_passthrough(tensor, region)
    }

    /// Reads back what was written at byte `at` of a tensor that begins at `offset` of the file, and compares.
    fn compare(&mut self, tensor: usize, written: &[u8], offset: u64, at: u64) -> Result<()> {
        self.back.resize(written.len(), 0);
        self.file.read(&mut self.back, offset + at)?;
        if self.back == written {
            return Ok(());
        }
        let pairs = self.back.iter().zip(written);
        let same = pairs.take_while(|(a, b)| a == b).count() as u64;
        let copied = &self.plan.passthrough[tensor];
        let index = (at + same) * 8 / copied.dtype.bitsize() as u64;
        let error = wrong_bytes(
            self.plan,
            "the copied bytes read back are not those written",
        );
        Err(error.in_tensor(&copied.name).at_index(index))
    }
}
