//! What a journal tells. Hashes are xxh3; offsets and bytes are those of the partial file; in a folder offsets are addresses, which tell the file too.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::holder::Holder;
use crate::{
    changes::Changes,
    hash::xxh3_64,
    output::{
        Region,
        manifest::{Stamp, texts},
    },
    plan::Plan,
    report::UnitReport,
};

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// A process began or went on with the work.
    Run(Holder),
    /// What is being made. The records behind it are of this job.
    Job(Box<Fingerprint>),
    /// A unit was counted.
    Counted(Counted),
    /// A unit is written and, where that is asked for, verified.
    Unit(Box<UnitDone>),
    /// A passthrough tensor is written.
    Copied(Copied),
    /// The names of the files that a folder will hold.
    Files(Vec<String>),
    /// The partial file's marker is about to be overwritten with these first bytes of its header.
    Header([u8; 16]),
}

impl Record {
    /// Whether it tells of work that need not be done again.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Counted(_) | Self::Unit(_) | Self::Copied(_))
    }
}

/// What shapes the bytes of a result: a partial file of another fingerprint is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Version of this program.
    pub tool: String,
    /// The source's name, which the result holds.
    pub source_name: String,
    /// Header mode.
    pub header: String,
    /// Whether units may be left as they are.
    pub keep_uncompressed: bool,
    /// Whether it is a file, a folder, or a folder with one file of tensors.
    pub form: String,
    /// xxh3 of the source's index and configuration, which the result may hold.
    pub source_texts: u64,
    /// Source, architecture, names, cast, verification.
    pub stamp: Stamp,
}

impl Fingerprint {
    /// Of a plan's result.
    pub fn of(plan: &Plan) -> Self {
        Self {
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            source_name: plan.source.name(),
            header: plan.options.header.as_str().to_owned(),
            keep_uncompressed: plan.options.keep_uncompressed,
            form: plan.form.as_str().to_owned(),
            source_texts: xxh3_64(json!(texts(&plan.source)).to_string().as_bytes()),
            stamp: Stamp::of(plan),
        }
    }

    /// Why what `before` has written cannot be used; none where it can.
    pub fn differs(&self, before: &Self) -> Option<&'static str> {
        let (now, then) = (&self.stamp, &before.stamp);
        let reasons = [
            (
                now.source != then.source
                    || self.source_name != before.source_name
                    || self.source_texts != before.source_texts,
                "the source has changed since",
            ),
            (
                self.tool != before.tool,
                "it is of another version of this program",
            ),
            (
                now.architecture != then.architecture || now.names_xxh3 != then.names_xxh3,
                "it is of another architecture or its definition has changed",
            ),
            (self != before, "it was made with other options"),
        ];
        let found = reasons.iter().find(|(differs, _)| *differs);
        found.map(|(_, reason)| *reason)
    }
}

/// What is known of a source tensor once it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorFacts {
    /// Of its bytes; none where it has none.
    pub xxh3: Option<u64>,
    /// What rounding did to its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// A unit's counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Its name.
    pub unit: String,
    /// How often each exponent occurs, of those that do.
    pub exponents: Vec<(u8, u64)>,
    /// The exponent of its last weight.
    pub last: u8,
    /// Whether it gets the two-bit code.
    pub two_bit: bool,
    /// Bits of each piece of its stream.
    pub bits: Vec<u64>,
    /// Its members in the source.
    pub source: Vec<TensorFacts>,
}

/// A finished unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitDone {
    /// Its six tensors in the order of their names.
    pub regions: [Region; 6],
    /// Its members in the source.
    pub source: Vec<TensorFacts>,
    /// What is told about it.
    pub report: UnitReport,
}

/// A finished passthrough tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Its name in the result.
    pub tensor: String,
    /// Its bytes.
    pub region: Region,
    /// It in the source.
    pub source: TensorFacts,
}
