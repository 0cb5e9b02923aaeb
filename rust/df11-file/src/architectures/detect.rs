//! Which architecture a set of tensor names and shapes belongs to, with what its config.json says.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    definition::{ConfigRule, Detect, ShapeRule},
    layout::Config,
};
use crate::header::{Header, TensorInfo};

/// Prefixes under which checkpoints keep the diffusion model, and how many names must carry one (ComfyUI's own rule).
const PREFIXES: [&str; 3] = ["model.diffusion_model.", "model.model.", "net."];
const MORE_NAMES_THAN: usize = 5;
const FALLBACK_PREFIX: &str = "model.";

/// The prefix that ComfyUI strips from a header's names; empty where there is none.
pub fn strip_prefix(header: &Header) -> &'static str {
    let carriers = |prefix: &str| {
        let carries = |tensor: &&TensorInfo| tensor.name.starts_with(prefix);
        header.tensors.iter().filter(carries).count()
    };
    // The first of equal counts wins, hence the reversal before max_by_key, which keeps the last.
    let best = PREFIXES
        .into_iter()
        .rev()
        .max_by_key(|prefix| carriers(prefix))
        .unwrap_or("");
    if carriers(best) > MORE_NAMES_THAN {
        best
    } else if carriers(FALLBACK_PREFIX) > 0 {
        FALLBACK_PREFIX
    } else {
        ""
    }
}

/// Names without prefix, with their shapes, and the config.json beside them.
pub struct Names<'a> {
    shapes: HashMap<&'a str, &'a [u64]>,
    config: Option<&'a Config>,
}

impl<'a> Names<'a> {
    /// The names of `header` that carry `prefix`, without it.
    pub fn new(header: &'a Header, prefix: &str) -> Self {
        let stripped = |name: &'a str| name.strip_prefix(prefix);
        let tensors = header.tensors.iter();
        tensors
            .filter_map(|t| Some((stripped(&t.name)?, t.shape.as_slice())))
            .collect()
    }

    /// The same names with what their config.json says.
    #[must_use]
    pub fn with_config(self, config: Option<&'a Config>) -> Self {
        Self { config, ..self }
    }

    /// Whether there is a config.json beside them.
    pub fn have_config(&self) -> bool {
        self.config.is_some()
    }

    /// Whether a name exists.
    pub fn has(&self, name: &str) -> bool {
        self.shapes.contains_key(name)
    }

    /// The shape of a tensor, where it exists.
    pub fn shape(&self, name: &str) -> Option<&'a [u64]> {
        self.shapes.get(name).copied()
    }

    fn axis_is(&self, (name, axis, value): &ShapeRule) -> bool {
        let shape = self.shapes.get(name.as_str());
        shape.and_then(|shape| shape.get(*axis)) == Some(value)
    }

    /// Whether config.json says so; `unknown` where there is none.
    fn says(&self, (key, value): &ConfigRule, unknown: bool) -> bool {
        let Some(config) = self.config else {
            return unknown;
        };
        match config.get(key) {
            Some(Value::Array(list)) => list.contains(value),
            said => said == Some(value),
        }
    }
}

impl<'a> FromIterator<(&'a str, &'a [u64])> for Names<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a [u64])>>(tensors: T) -> Self {
        Self {
            shapes: tensors.into_iter().collect(),
            config: None,
        }
    }
}

impl Detect {
    /// Whether all rules hold.
    pub fn matches(&self, names: &Names<'_>) -> bool {
        self.all.iter().all(|name| names.has(name))
            && self
                .any
                .iter()
                .all(|group| group.iter().any(|name| names.has(name)))
            && !self.none.iter().any(|name| names.has(name))
            && self.shape.iter().all(|rule| names.axis_is(rule))
            && !self.not_shape.iter().any(|rule| names.axis_is(rule))
            && self.config.iter().all(|rule| names.says(rule, true))
            && !self.not_config.iter().any(|rule| names.says(rule, false))
    }

    /// Which share of the rules holds, 0 to 1, and 0 where no demanded name is there: for the message about an unknown model.
    pub fn likeness(&self, names: &Names<'_>) -> f64 {
        let present = self.all.iter().filter(|name| names.has(name)).count();
        if present == 0 {
            return 0.0;
        }
        let is_there = |group: &&Vec<String>| group.iter().any(|name| names.has(name));
        let right = |rule: &&ShapeRule| names.axis_is(rule);
        let held = present
            + self.any.iter().filter(is_there).count()
            + self.none.iter().filter(|name| !names.has(name)).count()
            + self.shape.iter().filter(right).count()
            + self.not_shape.iter().filter(|rule| !right(rule)).count()
            + self
                .config
                .iter()
                .filter(|rule| names.says(rule, false))
                .count();
        let rules = self.all.len()
            + self.any.len()
            + self.none.len()
            + self.shape.len()
            + self.not_shape.len()
            + self.config.len();
        held as f64 / rules as f64
    }
}
