//! What is known of the source's tensors as they are read: the reader tells it, records and the header need it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use crate::{changes::Changes, journal::TensorFacts, plan::Plan, sync::lock};

/// Facts by index in the source's header.
#[derive(Debug, Default)]
pub struct SourceFacts(Mutex<BTreeMap<usize, TensorFacts>>);

impl SourceFacts {
    /// Takes note of a tensor that was read to its end. What was known of it before is replaced.
    pub fn set(&self, tensor: usize, facts: TensorFacts) {
        self.lock().insert(tensor, facts);
    }

    /// Those of a tensor, as far as they are known.
    pub fn of(&self, tensor: usize) -> TensorFacts {
        self.lock().get(&tensor).copied().unwrap_or_default()
    }

    /// What rounding did, by tensor, to those that were rounded.
    pub fn changes(&self) -> BTreeMap<usize, Changes> {
        let facts = self.lock();
        let changes = facts
            .iter()
            .filter_map(|(&tensor, facts)| Some((tensor, facts.changes?)));
        changes.collect()
    }

    /// The hashes of all tensors of the plan's source, in its header's order; none where a tensor was not read.
    pub fn hashes(&self, plan: &Plan) -> Vec<Option<u64>> {
        let facts = self.lock();
        let tensors = plan.source.header().tensors.iter().enumerate();
        let hashes = tensors.map(|(index, tensor)| {
            // What was left out because it equals another was not hashed.
            let mut tied = plan.tied.iter().filter(|tied| tied.is_left_out);
            let tied = tied.find(|tied| tied.tensor == index);
            let read = tied.map_or(index, |tied| tied.other);
            let known = facts.get(&read).and_then(|facts| facts.xxh3);
            known.or_else(|| (tensor.bytes() == 0).then(|| crate::hash::xxh3_64(&[])))
        });
        hashes.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, TensorFacts>> {
        lock(&self.0)
    }
}
