//! The checkpoint that a DF11 file was made from, tensor by tensor.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::CheckOptions;
use crate::{
    error::{Code, Error, Result},
    header::Header,
    options::{Cast, Form, HeaderMode, IfExists, Options},
    pipeline::{SpanMemory, locate, read_weights, same_passthrough},
    plan::{Plan, plan},
    progress::Progress,
    source::Source,
    stored::{Stored, description::Description, units::StoredUnit},
};

/// A source whose units are those of the file.
#[derive(Debug)]
pub struct Against {
    plan: Plan,
    /// Index in the plan by unit name.
    units: HashMap<String, usize>,
}

impl Against {
    /// Opens `source` and finds the units and tensors of `stored` in it.
    ///
    /// # Errors
    /// Every refusal of the source; `E_VERIFY` where it has other units or tensors.
    pub fn open(source: &Path, stored: &Stored, options: &CheckOptions) -> Result<Self> {
        let stamp = stored
            .description
            .as_ref()
            .map(|description| &description.stamp);
        let wanted = Options {
            architecture: stamp.map_or_else(
                || options.architecture.clone(),
                |stamp| stamp.architecture.as_str().into(),
            ),
            // What an official tool makes of tensors that are not BF16.
            header: if stamp.is_some() {
                HeaderMode::SelfDescribing
            } else {
                HeaderMode::Official
            },
            cast: stamp.map_or(Ok(Cast::ToBf16), |stamp| stamp.cast.parse())?,
            // Whoever made the file may have left units as they are.
            keep_uncompressed: true,
            // Nothing is written, whatever stands where it would be.
            form: Some(Form::File),
            if_exists: IfExists::Number,
            definitions: options.definitions.clone(),
            kernel: options.kernel,
            ..Options::default()
        };
        let plan = plan(source, None, wanted)?;
        let tensors = &stored.file.header().tensors;
        let others = stored.others.iter().map(|&index| &tensors[index]);
        let others: HashMap<_, _> = others
            .map(|tensor| (tensor.name.as_str(), tensor.dtype))
            .collect();
        let names: HashSet<_> = stored.units.iter().map(|unit| unit.name.as_str()).collect();
        let plan = plan.as_found(
            |unit| names.contains(unit),
            |tensor| others.contains_key(tensor),
        );
        // The official tool writes the dtypes of the model as its library has loaded it: some classes keep tensors in F32, whatever the source has.
        let plan = if stamp.is_none() {
            plan.in_dtypes(|tensor| others.get(tensor).copied())
        } else {
            plan
        };
        let units: HashMap<_, _> = plan
            .units
            .iter()
            .enumerate()
            .map(|(index, unit)| (unit.name.clone(), index))
            .collect();
        let other = |message: &str| Error::new(Code::Verify, message).at_path(stored.file.path());
        for unit in &stored.units {
            let fits = units
                .get(&unit.name)
                .is_some_and(|&index| plan.units[index].weights == unit.layout.weights);
            if !fits {
                return Err(other("the source has no such unit of this size")
                    .in_unit(&unit.name)
                    .hint("Compare with the checkpoint that the file was made from."));
            }
        }
        let description = stored.description.as_ref();
        if description.is_some_and(|description| !is_of(description, &plan.source)) {
            return Err(
                other("it was made from a file with another header than the source's")
                    .hint("Compare with the checkpoint that the file was made from."),
            );
        }
        if plan.units.len() != stored.units.len() {
            return Err(other(&format!(
                "the file has {} units, the source {}",
                stored.units.len(),
                plan.units.len()
            ))
            .hint("Compare with the checkpoint that the file was made from."));
        }
        Ok(Self { plan, units })
    }

    /// Reads weights `from..to` of a unit as BF16.
    ///
    /// # Errors
    /// Those of the source.
    pub fn read(
        &self,
        unit: &StoredUnit,
        (from, to): (u64, u64),
        memory: &mut SpanMemory,
    ) -> Result<()> {
        read_weights(&self.plan, self.index(unit), from, to - from, memory)
    }

    /// Adds unit, tensor, and index within the tensor of a unit's weight to an error.
    pub fn locate(&self, unit: &StoredUnit, weight: u64, error: Error) -> Error {
        locate(
            &self.plan,
            &self.plan.units[self.index(unit)],
            weight,
            error,
        )
    }

    /// Compares the tensors that are copied.
    ///
    /// # Errors
    /// `E_VERIFY` for the first that differs.
    pub fn passthrough(&self, stored: &Stored, progress: &Progress) -> Result<()> {
        let other = |message: &str, tensor: &str| {
            Error::new(Code::Verify, message)
                .in_tensor(tensor)
                .hint("Compare with the checkpoint that the file was made from.")
        };
        let tensors = &stored.file.header().tensors;
        for tensor in &self.plan.passthrough {
            progress.check_cancelled()?;
            let found = stored
                .others
                .iter()
                .map(|&index| &tensors[index])
                .find(|found| found.name == tensor.name);
            let Some(found) = found else {
                return Err(other("the file lacks a tensor of the source", &tensor.name));
            };
            if (found.dtype, &found.shape) != (tensor.dtype, &tensor.shape)
                || !same_passthrough(&self.plan, tensor, &stored.file, found)?
            {
                return Err(other("it is not what the source has", &tensor.name));
            }
            progress.add_stage(tensor.bytes);
        }
        if let Some(&extra) = stored.others.iter().find(|&&index| {
            !self
                .plan
                .passthrough
                .iter()
                .any(|tensor| tensor.name == tensors[index].name)
        }) {
            return Err(other("the source has no such tensor", &tensors[extra].name));
        }
        Ok(())
    }

    /// Whether the members of a unit are as long as in the source.
    pub fn has_members(&self, unit: &StoredUnit, members: &[u64]) -> bool {
        let planned = &self.plan.units[self.index(unit)].members;
        planned
            .iter()
            .map(|member| member.weights)
            .eq(members.iter().copied())
    }

    fn index(&self, unit: &StoredUnit) -> usize {
        self.units.get(&unit.name).copied().unwrap_or(0)
    }

    /// Bytes of the tensors that are copied.
    pub fn passthrough_bytes(&self) -> u64 {
        self.plan.passthrough_bytes()
    }
}

/// Whether a description is of this source. Files of a folder may be merged or cut in another way: then the same tensors are enough.
fn is_of(description: &Description, source: &Source) -> bool {
    if description.header_json == source.header_json() {
        return true;
    }
    let is_folder = !description.files.is_empty() || source.folder().is_some();
    let tensors = |header: &Header| {
        let tensors = header.tensors.iter();
        let mut tensors: Vec<_> = tensors
            .map(|tensor| (tensor.name.clone(), tensor.dtype, tensor.shape.clone()))
            .collect();
        tensors.sort();
        tensors
    };
    is_folder && tensors(&description.header) == tensors(source.header())
}
