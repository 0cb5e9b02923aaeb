//! Tensors that a model takes from others, such as an output layer that is its embedding.

use std::collections::BTreeMap;

use super::Tied;
use crate::{
    architectures::{Architecture, Config},
    error::{Code, Error},
    header::TensorInfo,
};

/// The member of a configuration that says whether a model has tied tensors.
const CONFIG_KEY: &str = "tie_word_embeddings";

/// Finds a model's tied tensors among `named`, target names with their source tensors. Those that are no unit are left out of it; one that the source
/// does not have and that is a unit, as the official tool makes it, gets the other's tensor.
pub fn find(
    (known, config): (&Architecture, Option<&Config>),
    tensors: &[TensorInfo],
    named: &mut BTreeMap<String, usize>,
    faults: &mut Vec<Error>,
) -> Vec<Tied> {
    let said = config.and_then(|config| config.get(CONFIG_KEY)?.as_bool());
    let mut found = Vec::new();
    for (name, other) in known.tied.iter().filter(|_| said != Some(false)) {
        let module = name.strip_suffix(".weight").unwrap_or(name);
        let is_unit = known
            .unit_weights(module)
            .is_some_and(|weights| weights == [name.as_str()]);
        let Some(&other) = named.get(other) else {
            continue;
        };
        let Some(&tensor) = named.get(name) else {
            if is_unit {
                named.insert(name.clone(), other);
            }
            continue;
        };
        let (a, b) = (&tensors[tensor], &tensors[other]);
        if (a.dtype, &a.shape) != (b.dtype, &b.shape) {
            different(&a.name, &b.name).add_to(faults);
        }
        if !is_unit {
            named.remove(name);
        }
        found.push(Tied {
            tensor,
            other,
            is_left_out: !is_unit,
        });
    }
    found
}

/// The refusal of a tensor that is not the one that the model takes it from.
pub fn different(tensor: &str, other: &str) -> Error {
    let message = format!(
        "by its configuration the model takes it from {other}, but the two are not the same"
    );
    Error::new(Code::Tied, message).in_tensor(tensor).hint(
        "Set tie_word_embeddings in config.json to what is true of the model, or write it again.",
    )
}
