//! A DF11 file as it lies on disk, whoever wrote it: its units, its other tensors, and what it says about itself.

mod config;
pub mod description;
pub mod hashes;
pub mod model;
pub mod parts;
pub mod structure;
pub mod unit_bytes;
pub mod units;

use std::{collections::HashSet, path::Path};

use crate::{
    error::{Code, Error, Result},
    source::Source,
};
use description::Description;
use units::StoredUnit;

/// An open DF11 file.
#[derive(Debug)]
pub struct Stored {
    /// The file.
    pub file: Source,
    /// Its units, in the order of their names.
    pub units: Vec<StoredUnit>,
    /// Its other tensors: indices in the header.
    pub others: Vec<usize>,
    /// What it says about itself; none where it is not a self-describing file.
    pub description: Option<Description>,
}

impl Stored {
    /// Opens `path`, and checks by the header that it is a DF11 file whose sizes fit together.
    ///
    /// # Errors
    /// What the file is instead; `E_STRUCTURE` for each unit that cannot be right; `E_CONFIG` where a folder's configuration does not fit its units.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(Source::open(path)?)
    }

    /// The same of a file that is open.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn of(file: Source) -> Result<Self> {
        let path = file.path();
        let (units, faults) = units::find(file.header());
        if let Some(error) = Error::collect(faults) {
            return Err(error.all_at_path(path));
        }
        if units.is_empty() {
            return Err(Error::new(Code::NotDf11, "the file holds no DF11 unit")
                .hint("Choose a file that was compressed, usually called NAME-DF11.safetensors.")
                .at_path(path));
        }
        if let Some(config) = file.config().filter(|config| config.is_df11()) {
            config::check(config, &units).map_err(|error| error.all_at_path(path))?;
        }
        let taken: HashSet<usize> = units.iter().flat_map(|unit| unit.tensors).collect();
        let others = (0..file.header().tensors.len())
            .filter(|index| !taken.contains(index))
            .collect();
        let description = Description::read(file.header(), file.identity().bytes)
            .map_err(|error| error.at_path(path))?;
        Ok(Self {
            file,
            units,
            others,
            description,
        })
    }

    /// The names of the other tensors.
    pub fn other_names(&self) -> HashSet<&str> {
        let tensors = &self.file.header().tensors;
        let others = self.others.iter();
        others.map(|&index| tensors[index].name.as_str()).collect()
    }
}
