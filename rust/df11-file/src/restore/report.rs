//! What a restoration would do and what it did, for people and programs (schemas `df11.restore-plan/1`, `df11.restore/1`).

use std::time::Duration;

use serde::Serialize;

use super::{Kind, Restoration};
use crate::{
    output::left_was_replaced,
    report::{Status, text},
};

/// What a restoration would do.
#[derive(Clone, Debug, Serialize)]
pub struct RestorePlanReport {
    schema: &'static str,
    /// The DF11 file.
    pub source: String,
    /// The file that would be written.
    pub target: String,
    /// Its size.
    pub target_bytes: u64,
    /// Whether it would be the very file that was compressed, byte for byte.
    pub exact: bool,
    /// Its architecture, where that was asked for the names and shapes.
    pub architecture: Option<String>,
    /// Its tensors, in the order of its header.
    pub tensors: Vec<RestoredTensor>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A tensor of a restored file.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredTensor {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<u64>,
}

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReport {
    schema: &'static str,
    /// How it ended.
    pub status: Status,
    /// The DF11 file.
    pub source: String,
    /// Its size.
    pub source_bytes: u64,
    /// The restored file.
    pub target: String,
    /// Its size.
    pub target_bytes: u64,
    /// Whether it is the very file that was compressed, byte for byte.
    pub exact: bool,
    /// Its architecture, where that was asked for the names and shapes.
    pub architecture: Option<String>,
    /// Tensors of the restored file.
    pub tensors: u64,
    /// Units that were decoded, or had been.
    pub units: u64,
    /// Time taken.
    pub seconds: f64,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl RestorePlanReport {
    pub(super) fn new(restoration: &Restoration) -> Self {
        let tensors = restoration.outline.header.tensors.iter();
        let tensors = tensors.map(|tensor| RestoredTensor {
            name: tensor.name.clone(),
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.clone(),
        });
        Self {
            schema: "df11.restore-plan/1",
            source: text(restoration.stored.file.path()),
            target: text(&restoration.target),
            target_bytes: restoration.outline.bytes(),
            exact: restoration.kind.is_exact(),
            architecture: restoration.kind.architecture(),
            tensors: tensors.collect(),
            notes: restoration.kind.notes(),
        }
    }
}

impl RestoreReport {
    pub(super) fn new(
        restoration: &Restoration,
        status: Status,
        partial_replaced: bool,
        time: Duration,
    ) -> Self {
        let is_folder = restoration.outline.texts.is_some();
        let mut notes = restoration.kind.notes();
        notes.extend(partial_replaced.then(|| left_was_replaced(is_folder)));
        Self {
            schema: "df11.restore/1",
            status,
            source: text(restoration.stored.file.path()),
            source_bytes: restoration.stored.file.identity().bytes,
            target: text(&restoration.target),
            target_bytes: restoration.outline.bytes(),
            exact: restoration.kind.is_exact(),
            architecture: restoration.kind.architecture(),
            tensors: restoration.outline.header.tensors.len() as u64,
            units: restoration.outline.parts.units.len() as u64,
            seconds: time.as_secs_f64(),
            notes,
        }
    }
}

impl Kind {
    fn is_exact(&self) -> bool {
        matches!(self, Self::Source { .. })
    }

    fn architecture(&self) -> Option<String> {
        match self {
            Self::Recognised(architecture, _) => Some(architecture.id.clone()),
            Self::Source { .. } | Self::Described { .. } => None,
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Self::Source { is_folder } => {
                let note = "the files of tensors, their index and the configuration are those of the source; its other files are not kept";
                is_folder.then(|| note.to_owned()).into_iter().collect()
            }
            Self::Described {
                left_out: (tensors, bytes),
            } => vec![format!(
                "names are those that the model's loader knows, and the order is not the source's, of which {tensors} tensors with {bytes} bytes are left out: they are no part of the model"
            )],
            Self::Recognised(architecture, is_shown) => {
                let unknown = "the names, order, metadata and dropped tensors of the source are not known, nor which tensors were rounded to BF16".to_owned();
                let by = format!(
                    "shapes follow from the other tensors by {}",
                    architecture.origin
                );
                let chosen = format!(
                    "only the choice says that this is {}: the tensor names do not show it",
                    architecture.id
                );
                [unknown, by]
                    .into_iter()
                    .chain((!is_shown).then_some(chosen))
                    .collect()
            }
        }
    }
}
