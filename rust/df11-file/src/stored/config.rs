//! The configuration of a DF11 folder against its units: the loader decodes by it, and checks nothing.

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::units::StoredUnit;
use crate::{
    error::{Code, Error, Result},
    options::ConfigVersion,
    plan::CONFIG_KEY,
    source::Config,
};

#[derive(Deserialize)]
struct Df11Config {
    version: String,
    threads_per_block: Vec<u64>,
    bytes_per_thread: u64,
    pattern_dict: Map<String, Value>,
}

/// Checks that a loader with this configuration decodes these units as they were encoded.
///
/// # Errors
/// `E_CONFIG` where it does not.
pub fn check(config: &Config, units: &[StoredUnit]) -> Result<()> {
    let fault = |message: String| {
        Error::new(
            Code::Config,
            format!("{CONFIG_KEY} in config.json: {message}"),
        )
        .hint("Download the folder again, or make it again.")
    };
    let found = config.members.get(CONFIG_KEY).cloned().unwrap_or_default();
    let found: Df11Config = serde_json::from_value(found)
        .map_err(|error| fault(format!("it cannot be read: {error}")))?;
    if found.version.parse::<ConfigVersion>().is_err() {
        return Err(fault(format!(
            "its version {:?} is not known here, only {}",
            found.version,
            ConfigVersion::NAMES.join(", ")
        )));
    }
    if found.threads_per_block != [512] || found.bytes_per_thread != 8 {
        let message = "no kernel decodes with these threads_per_block and bytes_per_thread";
        return Err(fault(message.to_owned()));
    }
    let patterns: Vec<_> = found
        .pattern_dict
        .iter()
        // What Python alone understands matches nothing here.
        .filter_map(|(pattern, attributes)| {
            let pattern = Regex::new(&format!("^(?:{pattern})$")).ok()?;
            Some((pattern, attributes.as_array()?.len().max(1) as u64))
        })
        .collect();
    let mut faults = Vec::new();
    for unit in units {
        let pattern = patterns
            .iter()
            .find(|(pattern, _)| pattern.is_match(&unit.name));
        let message = match pattern {
            None => "no pattern names this unit, so it would not be decoded".to_owned(),
            Some((_, named)) if *named != unit.members => {
                format!(
                    "its pattern names {named} tensors, the unit has {}",
                    unit.members
                )
            }
            Some(_) => continue,
        };
        fault(message).in_unit(&unit.name).add_to(&mut faults);
    }
    Error::collect(faults).map_or(Ok(()), Err)
}
