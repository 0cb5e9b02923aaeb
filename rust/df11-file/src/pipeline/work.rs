//! The steps of a job, done in order: survey, encode and verify a unit, or copy a tensor.

use std::sync::mpsc::{Receiver, Sender};

use df11_codec::{EncodedPiece, Kernel, limits::MAX_WEIGHTS_PER_CHUNK};
use rayon::ThreadPool;
use xxhash_rust::xxh3::Xxh3;

use super::{
    check_space,
    encode::{OverfillProbe, UnitHashes, UnitWriter},
    flush::FlushRequests,
    reader::{Span, read_weights},
    schedule::Step,
    survey::{Survey, SurveyedUnit},
    unit_check::{UnitCheck, wrong_bytes},
    verify::Verification,
};
use crate::{
    budget::{Budget, PIECE_WEIGHTS},
    error::{Code, Error, Result},
    options::{HeaderMode, Verify},
    output::{FileMap, PartialFile, manifest::Manifest, split_positions},
    plan::Plan,
    progress::{Phase, Progress},
    report::{Report, UnitReport},
};

/// Bytes of a copied tensor that are written, read back and compared at a time.
const COPY_BYTES: usize = 1 << 20;

/// How a job speaks with its other threads.
pub struct Channels {
    /// Filled spans from the reader.
    pub spans: Receiver<Result<Span>>,
    /// Their buffers, back to the reader.
    pub give_back: Sender<Span>,
    /// Bytes written, to the flusher.
    pub flush: FlushRequests,
}

/// A job in work.
pub struct Work<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    file: &'a PartialFile,
    pool: &'a ThreadPool,
    kernel: Kernel,
    channels: Channels,
    /// The one span of a unit that was surveyed and is encoded next.
    kept: Option<Span>,
    /// Known from the start for a self-describing file, after the last survey for an official one.
    map: Option<FileMap>,
    surveyed: Vec<Option<SurveyedUnit>>,
    pieces: Vec<EncodedPiece>,
    unit_hashes: Vec<UnitHashes>,
    passthrough_hashes: Vec<u64>,
    unit_reports: Vec<Option<UnitReport>>,
}

impl<'a> Work<'a> {
    /// A job with nothing done yet.
    pub fn new(
        plan: &'a Plan,
        progress: &'a Progress,
        budget: &'a Budget,
        file: &'a PartialFile,
        pool: &'a ThreadPool,
        manifest: Option<&Manifest>,
        channels: Channels,
    ) -> Self {
        Self {
            plan,
            progress,
            file,
            pool,
            kernel: plan.options.kernel,
            channels,
            kept: None,
            map: manifest.map(|manifest| FileMap::self_describing(plan, manifest.header_bytes)),
            surveyed: plan.units.iter().map(|_| None).collect(),
            pieces: (0..budget.threads + 2)
                .map(|_| EncodedPiece::default())
                .collect(),
            unit_hashes: vec![[0; 6]; plan.units.len()],
            passthrough_hashes: vec![0; plan.passthrough.len()],
            unit_reports: plan.units.iter().map(|_| None).collect(),
        }
    }

    /// Does the next step.
    ///
    /// # Errors
    /// The step's refusal or failure.
    pub fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Survey { unit, keep } => self.survey(unit, keep),
            Step::Encode { unit } => self.encode(unit),
            Step::Copy { tensor } => self.copy(tensor),
        }
    }

    /// The finished map and the hashes in file order; adds the units to the report.
    pub fn finish(self, report: &mut Report) -> Result<(FileMap, Vec<u64>)> {
        report.units = self.unit_reports.into_iter().flatten().collect();
        let map = self
            .map
            .ok_or_else(|| Error::new(Code::Internal, "the job ended before its first tensor"))?;
        let hashes = map.hashes_in_order(&self.unit_hashes, &self.passthrough_hashes);
        Ok((map, hashes))
    }

    fn next_span(&self) -> Result<Span> {
        self.progress.check_cancelled()?;
        self.channels
            .spans
            .recv()
            .map_err(|_| Error::new(Code::Internal, "the reading thread ended early"))?
    }

    /// Hands a buffer back to the reader, which may have ended.
    fn release(&self, span: Span) {
        let _ = self.channels.give_back.send(span);
    }

    fn survey(&mut self, index: usize, keep: bool) -> Result<()> {
        let plan = self.plan;
        let unit = &plan.units[index];
        self.progress.enter_unit(index);
        self.progress.set_phase(if self.map.is_some() {
            Phase::Compressing
        } else {
            Phase::Reading
        });
        let mut survey = Survey::default();
        let mut counted = 0;
        while counted < unit.weights {
            let span = self.next_span()?;
            self.pool
                .install(|| survey.count(self.kernel, self.progress, plan, unit, &span))?;
            counted += span.len() as u64 / 2;
            if keep {
                self.kept = Some(span);
            } else {
                self.progress.skip_stages(span.len() as u64);
                self.release(span);
            }
        }
        let mut surveyed = survey.code(unit)?;
        if surveyed.code.may_overfill_chunk()
            && self.fullest_chunk(index, &surveyed)? > MAX_WEIGHTS_PER_CHUNK
        {
            surveyed = survey.two_bit_code(unit)?;
        }
        self.surveyed[index] = Some(surveyed);
        self.progress.leave_unit(false);
        Ok(())
    }

    /// Most weights in one kernel chunk of a near-constant unit. Rare, so it may read the unit once more.
    fn fullest_chunk(&self, index: usize, surveyed: &SurveyedUnit) -> Result<u64> {
        let mut probe = OverfillProbe::default();
        let mut bytes = Vec::new();
        for (piece, start) in surveyed.starts.iter().enumerate() {
            self.progress.check_cancelled()?;
            let weights = PIECE_WEIGHTS.min(self.plan.units[index].weights - start.weight);
            let weights = if let Some(kept) = &self.kept {
                &kept[start.weight as usize * 2..][..weights as usize * 2]
            } else {
                read_weights(self.plan, index, start.weight, weights, &mut bytes)?;
                &bytes
            };
            probe.piece(self.kernel, surveyed, piece, weights);
        }
        Ok(probe.most_weights())
    }

    fn encode(&mut self, index: usize) -> Result<()> {
        let (plan, file) = (self.plan, self.file);
        let unit = &plan.units[index];
        self.progress.set_phase(Phase::Compressing);
        self.ready_map()?;
        self.progress.enter_unit(index);
        let missing = || Error::new(Code::Internal, "a unit was encoded before it was surveyed");
        let surveyed = self.surveyed[index].take().ok_or_else(missing)?;
        let layout = surveyed.code.layout();
        let map = self.map.as_mut().ok_or_else(missing)?;
        if plan.options.header == HeaderMode::SelfDescribing {
            map.place(plan, index, layout);
        }
        let place = map.place_of(index);
        let mut writer = UnitWriter::new(
            file,
            self.progress,
            &surveyed,
            place,
            &split_positions(unit),
        )?;
        let read = |buffer: &mut [u8], offset: u64| file.read(buffer, offset);
        let check = UnitCheck {
            read: &read,
            progress: self.progress,
            plan,
            unit,
            place,
            layout,
        };
        let mut verification = match plan.options.verify {
            Verify::Full => Some(Verification::new(check)?),
            Verify::Off => None,
        };
        let reads = if self.kept.is_some() { 1 } else { 2 };
        let mut encoded = 0;
        while encoded < unit.weights {
            let span = self.kept.take().map_or_else(|| self.next_span(), Ok)?;
            let front = writer.span(self.pool, self.kernel, &mut self.pieces, &span)?;
            if let Some(verification) = &mut verification {
                self.progress.check_cancelled()?;
                self.pool
                    .install(|| verification.span(&span, encoded, front))?;
            }
            encoded += span.len() as u64 / 2;
            self.channels
                .flush
                .written(self.progress.snapshot().bytes_out);
            self.release(span);
        }
        self.unit_hashes[index] = writer.finish()?;
        self.unit_reports[index] = Some(UnitReport::new(unit, &surveyed.code, reads));
        self.progress.leave_unit(true);
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
        check_space(self.plan, map.file_bytes())?;
        self.map = Some(map);
        Ok(())
    }

    fn copy(&mut self, tensor: usize) -> Result<()> {
        self.progress.set_phase(Phase::Compressing);
        self.ready_map()?;
        let mut copying = self
            .map
            .as_ref()
            .map_or(0, |map| map.passthrough_offset(tensor));
        let end = copying + self.plan.passthrough[tensor].bytes;
        let mut hasher = Xxh3::new();
        let mut back = Vec::new();
        while copying < end {
            let span = self.next_span()?;
            // In parts, so that a request to stop is seen in a tensor of any size.
            for bytes in span.chunks(COPY_BYTES) {
                self.progress.check_cancelled()?;
                self.file.write(bytes, copying)?;
                if self.plan.options.verify == Verify::Full {
                    back.resize(bytes.len(), 0);
                    self.file.read(&mut back, copying)?;
                    self.compare(tensor, &back, bytes, end - copying)?;
                }
                hasher.update(bytes);
                copying += bytes.len() as u64;
                self.progress.add_out(bytes.len() as u64);
                self.progress.skip_stages(bytes.len() as u64);
            }
            self.channels
                .flush
                .written(self.progress.snapshot().bytes_out);
            self.release(span);
        }
        self.passthrough_hashes[tensor] = hasher.digest();
        Ok(())
    }

    /// Compares bytes read back with those written; `left` bytes of the tensor begin with them.
    fn compare(&self, tensor: usize, back: &[u8], written: &[u8], left: u64) -> Result<()> {
        if back == written {
            return Ok(());
        }
        let copied = &self.plan.passthrough[tensor];
        let same = back.iter().zip(written).take_while(|(a, b)| a == b).count() as u64;
        let index = (copied.bytes - left + same) * 8 / copied.dtype.bitsize() as u64;
        let error = wrong_bytes(
            self.plan,
            "the copied bytes read back are not those written",
        );
        Err(error.in_tensor(&copied.name).at_index(index))
    }
}
