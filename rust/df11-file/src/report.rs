//! What a compression did, for people and programs (schema `df11.report/1`).

use std::{collections::BTreeMap, path::Path, time::Instant};

use df11_codec::{CodeKind, Kernel, UnitCode, UnitLayout};
use serde::{Deserialize, Serialize};

use crate::{
    architectures::Loader,
    budget::Budget,
    changes::Changes,
    options::Io,
    plan::{Plan, UnitPlan},
};

/// How a job ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The file was written.
    Done,
    /// The file was there already.
    AlreadyDone,
}

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// Version of this program.
    pub tool: &'static str,
    /// How it ended.
    pub status: Status,
    /// The source file.
    pub source: String,
    /// The result.
    pub target: String,
    /// Architecture id.
    pub architecture: String,
    /// Its name for people.
    pub architecture_name: String,
    /// The file that the definition came from.
    pub definition: String,
    /// The loader node that takes the result.
    pub loader: Option<Loader>,
    /// Whether the result is a file or a folder, and which.
    pub layout: &'static str,
    /// Header mode.
    pub header: &'static str,
    /// The verification of this run; `not repeated` where the file was there already.
    pub verify: &'static str,
    /// Size of the source file.
    pub source_bytes: u64,
    /// Size of the result.
    pub target_bytes: u64,
    /// Result by source.
    pub ratio: f64,
    /// Time taken.
    pub seconds: f64,
    /// Bytes of the result that an interrupted run had finished.
    pub resumed_bytes: u64,
    /// Bytes asked from the source.
    pub bytes_read: u64,
    /// Bytes that this process had read from devices meanwhile, where the system tells.
    pub device_bytes_read: Option<u64>,
    /// How the source was read.
    pub io: &'static str,
    /// The units, in the order they were written.
    pub units: Vec<UnitReport>,
    /// Units that were left as they are, because DF11 cannot hold them or would make them larger.
    pub left: Vec<LeftUnit>,
    /// What rounding to BF16 did; none where nothing was rounded.
    pub cast: Option<CastReport>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The implementation of the hot loops.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Memory budget in bytes.
    pub memory_budget: u64,
}

/// A unit that was left as it is.
#[derive(Clone, Debug, Serialize)]
pub struct LeftUnit {
    /// Its name.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Its bytes in the result.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

impl LeftUnit {
    pub(crate) fn new(unit: &UnitPlan, bytes: u64, reason: String) -> Self {
        Self {
            name: unit.name.clone(),
            weights: unit.weights,
            bytes,
            reason,
        }
    }
}

/// What rounding did to the weights that were not BF16.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CastReport {
    /// Tensors that were rounded.
    pub tensors: u64,
    /// Of these, the ones of which a value changed.
    pub changed_tensors: u64,
    /// Values that were rounded.
    pub values: u64,
    /// Of these, the ones that changed. A NaN that stays one has not.
    pub changed_values: u64,
    /// Of the changed values, finite ones that became infinite.
    pub to_infinity: u64,
    /// Of the changed values, those that became 0.
    pub to_zero: u64,
    /// The largest change of all other values, as a share of the value.
    pub largest_relative_change: f64,
}

/// One unit of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitReport {
    /// Its name.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Bytes as BF16.
    pub bf16_bytes: u64,
    /// Bytes of its six tensors.
    pub df11_bytes: u64,
    /// DF11 bits per weight.
    pub bits_per_weight: f64,
    /// Its code: `official`, `flattened`, `two-bit`.
    pub code: String,
    /// How many times its weights were read.
    pub reads: u32,
    /// What is special about it.
    pub notes: Vec<String>,
}

impl Report {
    /// A report without results.
    pub fn new(plan: &Plan, budget: &Budget, status: Status) -> Self {
        Self {
            schema: "df11.report/1",
            tool: env!("CARGO_PKG_VERSION"),
            status,
            source: text(plan.source.path()),
            target: text(&plan.target),
            architecture: plan.architecture.id.clone(),
            architecture_name: plan.architecture.name.clone(),
            definition: plan.architecture.origin.clone(),
            loader: plan.architecture.loader.clone(),
            layout: plan.form.as_str(),
            header: plan.options.header.as_str(),
            verify: match status {
                Status::Done => plan.options.verify.as_str(),
                Status::AlreadyDone => "not repeated",
            },
            source_bytes: plan.source.identity().bytes,
            target_bytes: 0,
            ratio: 0.0,
            seconds: 0.0,
            resumed_bytes: 0,
            bytes_read: 0,
            device_bytes_read: None,
            io: plan.options.io.as_str(),
            units: Vec::new(),
            left: Vec::new(),
            cast: None,
            notes: plan
                .notes
                .iter()
                .cloned()
                .chain(disabled_kernels())
                .collect(),
            kernel: plan.options.kernel.name(),
            threads: budget.threads,
            memory_budget: budget.bytes,
        }
    }

    /// Adds the units that are left as they are.
    pub(crate) fn take_left(&mut self, left: Vec<LeftUnit>) {
        let note =
            |unit: &LeftUnit| format!("unit {} was left uncompressed: {}", unit.name, unit.reason);
        self.notes.extend(left.iter().map(note));
        self.left = left;
    }

    /// Adds what is known once everything was read.
    pub(crate) fn take_totals(
        &mut self,
        bytes_read: u64,
        changes: &BTreeMap<usize, Changes>,
        io: Io,
    ) {
        self.bytes_read = bytes_read;
        self.io = io.as_str();
        self.cast = CastReport::of(changes);
        self.notes.extend(self.cast.map(CastReport::sentence));
        let special = self.units.iter().flat_map(|unit| {
            unit.notes
                .iter()
                .map(move |note| format!("unit {}: {note}", unit.name))
        });
        let special: Vec<_> = special.collect();
        self.notes.extend(special);
    }

    pub(crate) fn finished(mut self, plan: &Plan, started: Instant) -> Self {
        self.target_bytes = size(&plan.target);
        self.ratio = self.target_bytes as f64 / self.source_bytes.max(1) as f64;
        self.seconds = started.elapsed().as_secs_f64();
        self
    }
}

impl CastReport {
    /// Of what rounding did tensor by tensor.
    fn of(changes: &BTreeMap<usize, Changes>) -> Option<Self> {
        let mut all = Changes::default();
        for tensor in changes.values() {
            all.add(tensor);
        }
        let others = changes.values().filter(|tensor| tensor.changed > 0);
        (all.values > 0).then(|| Self {
            tensors: changes.len() as u64,
            changed_tensors: others.count() as u64,
            values: all.values,
            changed_values: all.changed,
            to_infinity: all.to_infinity,
            to_zero: all.to_zero,
            largest_relative_change: all.largest,
        })
    }

    fn sentence(self) -> String {
        let Self {
            tensors, values, ..
        } = self;
        if self.changed_values == 0 {
            return format!(
                "rounding {tensors} tensors to BF16 changed none of their {values} values"
            );
        }
        let counted = |count: u64, what: &str| match count {
            0 => String::new(),
            count => format!("; {count} became {what}"),
        };
        format!(
            "rounding {tensors} tensors to BF16 changed {} of their {values} values, in {} tensors, by at most {}{}{}",
            self.changed_values,
            self.changed_tensors,
            percent(self.largest_relative_change),
            counted(self.to_infinity, "infinite"),
            counted(self.to_zero, "0"),
        )
    }
}

/// A share with two digits, however small.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.01 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1e} %")
    }
}

impl UnitReport {
    /// The report of an encoded unit whose weights were read `reads` times.
    pub(crate) fn new(unit: &UnitPlan, code: &UnitCode, reads: u32) -> Self {
        let df11_bytes = df11_bytes(unit, code.layout());
        let name = match code.kind() {
            CodeKind::Official => "official",
            CodeKind::Flattened { .. } => "flattened",
            CodeKind::TwoBit { .. } => "two-bit",
        };
        Self {
            name: unit.name.clone(),
            weights: unit.weights,
            bf16_bytes: unit.weights * 2,
            df11_bytes,
            bits_per_weight: df11_bytes as f64 * 8.0 / unit.weights as f64,
            code: name.to_owned(),
            reads,
            notes: notes(code, df11_bytes, unit.weights * 2),
        }
    }
}

/// Bytes of the six tensors of a unit with this layout.
pub(crate) fn df11_bytes(unit: &UnitPlan, layout: &UnitLayout) -> u64 {
    let split_bytes = (unit.members.len() as u64 - 1) * 8;
    layout.encoded_exponent_bytes
        + layout.gaps_bytes
        + layout.lut_rows * 256
        + layout.position_entries * 4
        + layout.weights
        + split_bytes
}

fn notes(code: &UnitCode, df11_bytes: u64, bf16_bytes: u64) -> Vec<String> {
    let repaired = code.repaired_table();
    let larger = format!(
        "it is larger than its BF16 weights: {df11_bytes} bytes instead of {bf16_bytes}; it could be left as it is ('keep uncompressed')"
    );
    let cases = [
        (
            matches!(code.kind(), CodeKind::Flattened { .. }),
            "it needs more decode tables than the kernel can reach, so its code was flattened",
        ),
        (
            matches!(code.kind(), CodeKind::TwoBit { .. }),
            "it is nearly constant, so it got a code of at least two bits that the kernel can launch with",
        ),
        (
            repaired.is_some(),
            "the official file would hang the kernel at its end, so one decode table was repaired",
        ),
        (
            code.limiter_tie(),
            "equal counts at the 32-bit limit: the official tool's code depends on its numpy version; the smallest exponents were taken",
        ),
        (
            code.official_crashes() && code.kind() == CodeKind::Official,
            "the official tool cannot encode it (it crashes); the code follows its rules",
        ),
        (df11_bytes > bf16_bytes, &larger),
    ];
    cases
        .iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, note)| (*note).to_owned())
        .collect()
}

/// Kernels that this machine gets wrong.
fn disabled_kernels() -> impl Iterator<Item = String> {
    let note = |kernel| {
        format!("the kernel {kernel} failed its self-test on this machine and was not used")
    };
    Kernel::disabled().into_iter().map(note)
}

/// Bytes of a file, or of the files in a folder.
fn size(path: &Path) -> u64 {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |stat| stat.len());
    std::fs::read_dir(path).map_or_else(
        |_| bytes(path),
        |entries| entries.flatten().map(|entry| bytes(&entry.path())).sum(),
    )
}

/// A path as text, for reports.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}
