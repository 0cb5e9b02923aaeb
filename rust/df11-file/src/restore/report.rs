//! What a restoration did, for people and programs (schema `df11.restore/1`).

use std::time::Duration;

use serde::Serialize;

use super::Restoration;
use crate::report::{Status, text};

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
    /// Tensors of the restored file.
    pub tensors: u64,
    /// Units that were decoded, or had been.
    pub units: u64,
    /// Time taken.
    pub seconds: f64,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl RestoreReport {
    pub(super) fn new(
        restoration: &Restoration,
        status: Status,
        partial_replaced: bool,
        time: Duration,
    ) -> Self {
        let note = "a partial file left by an interrupted run was replaced".to_owned();
        Self {
            schema: "df11.restore/1",
            status,
            source: text(restoration.stored.file.path()),
            source_bytes: restoration.stored.file.identity().bytes,
            target: text(&restoration.target),
            target_bytes: restoration.description.stamp.source.bytes,
            exact: true,
            tensors: restoration.description.header.tensors.len() as u64,
            units: restoration.parts.units.len() as u64,
            seconds: time.as_secs_f64(),
            notes: partial_replaced.then_some(note).into_iter().collect(),
        }
    }
}
