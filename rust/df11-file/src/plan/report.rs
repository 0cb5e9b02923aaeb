//! A plan for people and programs (schema `df11.plan/1`).

use serde::Serialize;

use super::{Plan, folder_of};
use crate::{
    architectures::Loader,
    header::TensorEntry,
    output::FileMap,
    report::text,
    system::{self, disk},
};

/// What a compression would do.
#[derive(Debug, Serialize)]
pub struct PlanReport {
    schema: &'static str,
    /// The source file.
    pub source: String,
    /// The file or folder that would be written.
    pub target: String,
    /// Which of them.
    pub layout: &'static str,
    /// The names of a folder's files of tensors.
    pub files: Vec<String>,
    /// Size of the source file.
    pub source_bytes: u64,
    /// Architecture id.
    pub architecture: String,
    /// Its name for people.
    pub architecture_name: String,
    /// The file that the definition came from.
    pub definition: String,
    /// The loader node that takes the result.
    pub loader: Option<Loader>,
    /// The prefix that the model's names carry.
    pub prefix: &'static str,
    /// The units.
    pub units: Vec<UnitSummary>,
    /// Bytes that are copied.
    pub passthrough_bytes: u64,
    /// Source tensors that the result does not hold.
    pub dropped: Vec<String>,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Expected size of the result.
    pub predicted_bytes: u64,
    /// Free bytes on the target's disk.
    pub free_bytes: Option<u64>,
    /// Whether source and target lie on one disk, where the system tells.
    pub same_disk: Option<bool>,
    /// Whether the system calls the source's disk a rotating one, where it tells.
    pub rotating_disk: Option<bool>,
    /// The result's tensors in file order.
    pub tensors: Vec<TensorSummary>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One unit of a plan.
#[derive(Debug, Serialize)]
pub struct UnitSummary {
    /// Its name.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Its tensors, by their names in the source.
    pub tensors: Vec<String>,
}

/// One tensor of the result. Sides that only the weights decide are null.
#[derive(Debug, Serialize)]
pub struct TensorSummary {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<Option<u64>>,
}

impl PlanReport {
    /// The report of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let source = &plan.source.header().tensors;
        let name = |tensor: usize| source[tensor].name.clone();
        let units = plan.units.iter().map(|unit| UnitSummary {
            name: unit.name.clone(),
            weights: unit.weights,
            tensors: unit
                .members
                .iter()
                .map(|member| name(member.tensor))
                .collect(),
        });
        Self {
            schema: "df11.plan/1",
            source: text(plan.source.path()),
            target: text(&plan.target),
            layout: plan.form.as_str(),
            files: if plan.folder.is_some() {
                plan.file_names()
            } else {
                Vec::new()
            },
            source_bytes: plan.source.identity().bytes,
            architecture: plan.architecture.id.clone(),
            architecture_name: plan.architecture.name.clone(),
            definition: plan.architecture.origin.clone(),
            loader: plan.architecture.loader.clone(),
            prefix: plan.prefix,
            units: units.collect(),
            passthrough_bytes: plan.passthrough_bytes(),
            dropped: plan.dropped.iter().map(|&tensor| name(tensor)).collect(),
            dropped_bytes: plan
                .dropped
                .iter()
                .map(|&tensor| source[tensor].bytes())
                .sum(),
            predicted_bytes: plan.predicted_bytes(),
            free_bytes: system::free_space(&folder_of(&plan.target)),
            same_disk: disk::is_shared(plan.source.path(), &folder_of(&plan.target)),
            rotating_disk: disk::is_rotating(plan.source.path()),
            tensors: tensors(plan),
            notes: plan.notes.clone(),
        }
    }
}

fn tensors(plan: &Plan) -> Vec<TensorSummary> {
    let map = FileMap::outline(plan);
    let summary = |(entry, open): (&TensorEntry, bool)| TensorSummary {
        name: entry.name.clone(),
        dtype: entry.dtype.to_string(),
        shape: entry
            .shape
            .iter()
            .enumerate()
            .map(|(axis, &side)| (axis > 0 || !open).then_some(side))
            .collect(),
    };
    map.outlined().map(summary).collect()
}
