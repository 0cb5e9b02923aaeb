//! What a check has found, for people and programs (schema `df11.verify/1`). A check that finds a fault ends in an error instead.

use std::time::Duration;

use serde::Serialize;

use super::{CheckOptions, Level, decode::Work};
use crate::{
    report::text,
    stored::{Stored, description::Description},
};

/// The report of a file that is sound, as far as was looked.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    schema: &'static str,
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// How much was looked at.
    pub level: &'static str,
    /// Its units.
    pub units: u64,
    /// Their weights.
    pub weights: u64,
    /// Their kernel chunks.
    pub chunks: u64,
    /// Kernel chunks that were decoded.
    pub chunks_decoded: u64,
    /// Whether the file tells what it was made from.
    pub self_describing: bool,
    /// The source that it was compared with.
    pub against: Option<String>,
    /// The seed of the choice of kernel chunks.
    pub seed: Option<u64>,
    /// The GPU, and the version of CUDA that its driver understands.
    pub gpu: Option<String>,
    /// The file of the decode kernel that ran there.
    pub kernel_file: Option<String>,
    /// What was looked at and found right.
    pub checked: Vec<&'static str>,
    /// What this check could not have seen.
    pub unseen: Vec<&'static str>,
    /// Time taken.
    pub seconds: f64,
}

impl CheckReport {
    pub(super) fn new(
        stored: &Stored,
        options: &CheckOptions,
        work: &Work<'_>,
        hashed: bool,
        gpu: Option<(String, String)>,
        time: Duration,
    ) -> Self {
        let (gpu, kernel_file) = gpu.unzip();
        let sum = |of: fn(&df11_codec::UnitLayout) -> u64| {
            stored.units.iter().map(|unit| of(&unit.layout)).sum()
        };
        let source = options.against.is_some();
        let (level, described) = (options.level, stored.description.is_some());
        let rounded = stored
            .description
            .as_ref()
            .is_some_and(Description::was_rounded);
        let decodes = level >= Level::Sample;
        let pick = |cases: &[(bool, &'static str)]| {
            cases
                .iter()
                .filter(|(applies, _)| *applies)
                .map(|(_, text)| *text)
                .collect()
        };
        Self {
            schema: "df11.verify/1",
            file: text(stored.file.path()),
            bytes: stored.file.identity().bytes,
            level: level.as_str(),
            units: stored.units.len() as u64,
            weights: sum(|layout| layout.weights),
            chunks: sum(|layout| layout.chunks),
            chunks_decoded: work.chunks,
            self_describing: described,
            against: options.against.as_deref().map(text),
            seed: (level == Level::Sample).then_some(work.seed),
            gpu,
            kernel_file,
            checked: pick(&[
                (true, "sizes, decode tables, code lengths, positions"),
                (
                    hashed,
                    "every byte of every tensor, by the hashes that the file carries",
                ),
                (
                    level == Level::Sample,
                    "some kernel chunks: codes, gaps, positions",
                ),
                (level >= Level::Full, "every code, gap and position"),
                (
                    decodes && source,
                    "the decoded weights, bit for bit against the source",
                ),
                (
                    level == Level::Kernel,
                    "what the decode kernel gives on the GPU, bit for bit",
                ),
                (source, "the other tensors, against the source"),
                (
                    level >= Level::Full && !source && described && !rounded,
                    "the decoded weights, by the hashes of the source that the file carries",
                ),
            ]),
            unseen: pick(&[
                (!decodes && !hashed, "a changed code, gap, sign or mantissa"),
                (
                    !decodes && hashed,
                    "a file that was written wrong from the start",
                ),
                (
                    level == Level::Sample && !hashed,
                    "a change in a kernel chunk that was not chosen",
                ),
                (
                    decodes && !source && !described,
                    "other weights than the source had: the file carries no hashes, so compare it with its source",
                ),
                (
                    decodes && !source && rounded,
                    "other weights than the source had where they were rounded to BF16: compare it with its source",
                ),
                (
                    !source && !hashed,
                    "a change in a tensor that is not compressed",
                ),
            ]),
            seconds: time.as_secs_f64(),
        }
    }
}
