//! The index of a checkpoint in several files: which tensor lies in which.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt, fs,
    path::Path,
};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use super::{file::SafetensorsFile, index_fault};
use crate::{
    error::{Code, Error, Result},
    file_name,
    header::Header,
};

/// What the names of indices end with.
pub const ENDING: &str = ".safetensors.index.json";

/// Whether a path names an index.
pub fn is_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().ends_with(".index.json")
}

/// An index.
#[derive(Deserialize)]
pub struct Index {
    weight_map: WeightMap,
    #[serde(skip)]
    pub text: String,
}

/// The file of each tensor.
struct WeightMap(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct MapVisitor;
        impl<'de> Visitor<'de> for MapVisitor {
            type Value = WeightMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of file names")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut files = BTreeMap::new();
                while let Some((tensor, file)) = map.next_entry::<String, String>()? {
                    if let Some(other) = files.get(&tensor) {
                        let fault =
                            format!("tensor {tensor} occurs twice, in {file} and in {other}");
                        return Err(de::Error::custom(fault));
                    }
                    files.insert(tensor, file);
                }
                Ok(WeightMap(files))
            }
        }
        deserializer.deserialize_map(MapVisitor)
    }
}

impl Index {
    /// Reads the index at `path`, of at most `longest` bytes.
    ///
    /// # Errors
    /// `E_INDEX` where it is none, or names what is no file beside it; `E_NO_MEMORY` where it is longer; `E_READ`.
    pub fn read(path: &Path, longest: u64) -> Result<Self> {
        Self::read_file(path, longest).map_err(|error| error.all_at_path(path))
    }

    fn read_file(path: &Path, longest: u64) -> Result<Self> {
        let failed = |error| Error::read(path, &error);
        let stat = fs::metadata(path).map_err(failed)?;
        if !stat.is_file() {
            return Err(index_fault("this is not a regular file"));
        }
        if stat.len() > longest {
            let message = format!(
                "the index of {} bytes is too long for the memory budget, which holds one of {longest}",
                stat.len()
            );
            return Err(Error::new(Code::NoMemory, message).hint("Raise the budget."));
        }
        let text = fs::read(path).map_err(failed)?;
        let text =
            String::from_utf8(text).map_err(|_| index_fault("the index is not text in UTF-8"))?;
        let mut index: Self = serde_json::from_str(&text)
            .map_err(|error| index_fault(format!("the index is not valid: {error}")))?;
        index.text = text;
        let mut faults = Vec::new();
        for name in index.files() {
            let complaint = file_name::complaint(name);
            if let Some(why) = complaint {
                let message = format!("it names {name:?}, which is no file beside it: {why}");
                index_fault(message).add_to(&mut faults);
            }
        }
        if index.weight_map.0.is_empty() {
            faults.push(index_fault("it names no tensor"));
        }
        Error::collect(faults).map_or(Ok(index), Err)
    }

    /// The names of its files, in order.
    pub fn files(&self) -> BTreeSet<&str> {
        self.weight_map.0.values().map(String::as_str).collect()
    }

    /// Every tensor that is not in the file that the index says.
    ///
    /// # Errors
    /// `E_INDEX` for each, by name.
    pub fn check(&self, opened: &[(SafetensorsFile, Header, Vec<u8>)]) -> Result<()> {
        let mut found: HashMap<&str, String> = HashMap::new();
        let mut faults = Vec::new();
        for (file, header, _) in opened {
            for tensor in &header.tensors {
                let fault = match self.weight_map.0.get(&tensor.name) {
                    None => format!("the index does not name it, and {} holds it", file.name()),
                    Some(told) if *told != file.name() => {
                        format!("{} holds it, the index says {told}", file.name())
                    }
                    Some(_) => {
                        found.insert(&tensor.name, file.name());
                        continue;
                    }
                };
                index_fault(fault)
                    .in_tensor(&tensor.name)
                    .add_to(&mut faults);
            }
        }
        for (tensor, file) in &self.weight_map.0 {
            if !found.contains_key(tensor.as_str()) {
                index_fault(format!(
                    "the index says that {file} holds it, which does not"
                ))
                .in_tensor(tensor)
                .add_to(&mut faults);
            }
        }
        Error::collect(faults).map_or(Ok(()), Err)
    }
}
