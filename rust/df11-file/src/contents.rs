//! What a safetensors file holds, from its header alone (schema `df11.contents/1`).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    error::{Code, Error, Result},
    header::Header,
    options::Form,
    report::text,
    restore,
    source::Source,
    stored::{Stored, parts::Parts},
};

/// What a file holds.
#[derive(Debug, Serialize)]
pub struct Contents {
    schema: &'static str,
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its tensors.
    pub tensors: u64,
    /// Their dtypes, by falling bytes.
    pub dtypes: Vec<DtypeShare>,
    /// What a DF11 file holds; none for any other file.
    pub df11: Option<Df11Contents>,
}

/// The tensors of one dtype.
#[derive(Debug, Serialize)]
pub struct DtypeShare {
    /// The dtype, as the header spells it.
    pub dtype: String,
    /// Tensors.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a DF11 file holds.
#[derive(Debug, Serialize)]
pub struct Df11Contents {
    /// Its units, in the order of their names.
    pub units: Vec<StoredUnitSummary>,
    /// Weights of all units.
    pub weights: u64,
    /// Bytes of all units.
    pub df11_bytes: u64,
    /// Bits per weight over all units.
    pub bits_per_weight: f64,
    /// Bytes of the tensors that are not compressed.
    pub plain_bytes: u64,
    /// Who wrote it, where it tells.
    pub tool: Option<String>,
    /// File name of its source, where it tells.
    pub source_name: Option<String>,
    /// Size of its source, where it tells.
    pub source_bytes: Option<u64>,
    /// Architecture id, where it tells.
    pub architecture: Option<String>,
    /// Why its source cannot be restored byte for byte; none where it can.
    pub not_exact: Option<String>,
    /// The name that a restored file gets.
    pub restored_name: String,
    /// The name that a usable checkpoint gets.
    pub usable_name: String,
}

/// A unit of a DF11 file.
#[derive(Debug, Serialize)]
pub struct StoredUnitSummary {
    /// Its name.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Bytes as BF16.
    pub bf16_bytes: u64,
    /// Bytes of its six tensors.
    pub df11_bytes: u64,
    /// DF11 bits per weight.
    pub bits_per_weight: f64,
}

/// Looks at the header of `path`.
///
/// # Errors
/// What the file is instead of a sound safetensors file; `E_STRUCTURE` for a DF11 file whose header cannot be right.
pub fn contents(path: &Path) -> Result<Contents> {
    let source = Source::open(path)?;
    let mut contents = Contents {
        schema: "df11.contents/1",
        file: text(path),
        bytes: source.identity().bytes,
        tensors: source.header().tensors.len() as u64,
        dtypes: dtypes(source.header()),
        df11: None,
    };
    match Stored::of(source) {
        Ok(stored) => contents.df11 = Some(Df11Contents::new(path, &stored)?),
        Err(error) if error.code == Code::NotDf11 => {}
        Err(error) => return Err(error),
    }
    Ok(contents)
}

fn dtypes(header: &Header) -> Vec<DtypeShare> {
    let mut shares: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for tensor in &header.tensors {
        let share = shares.entry(tensor.dtype.to_string()).or_default();
        *share = (share.0 + 1, share.1 + tensor.bytes());
    }
    let share = |(dtype, (tensors, bytes))| DtypeShare {
        dtype,
        tensors,
        bytes,
    };
    let mut shares: Vec<_> = shares.into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}

impl Df11Contents {
    fn new(path: &Path, stored: &Stored) -> Result<Self> {
        let tensors = &stored.file.header().tensors;
        let units = stored.units.iter().map(|unit| {
            let bytes = unit.tensors.iter().map(|&tensor| tensors[tensor].bytes());
            let (weights, df11_bytes) = (unit.layout.weights, bytes.sum());
            StoredUnitSummary {
                name: unit.name.clone(),
                weights,
                bf16_bytes: weights * 2,
                df11_bytes,
                bits_per_weight: bits(df11_bytes, weights),
            }
        });
        let units: Vec<_> = units.collect();
        let weights = units.iter().map(|unit| unit.weights).sum();
        let df11_bytes = units.iter().map(|unit| unit.df11_bytes).sum();
        let description = stored.description.as_ref();
        let source_name = description.and_then(|description| description.source_name.clone());
        let is_folder = description.is_some_and(|description| !description.files.is_empty());
        let form = if is_folder { Form::Folder } else { Form::File };
        let name = |told, form| {
            let beside: PathBuf = restore::beside(path, told, form);
            let name = beside.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        Ok(Self {
            units,
            weights,
            df11_bytes,
            bits_per_weight: bits(df11_bytes, weights),
            plain_bytes: stored
                .others
                .iter()
                .map(|&other| tensors[other].bytes())
                .sum(),
            tool: stored.file.header().meta("df11.tool").map(str::to_owned),
            source_bytes: description.map(|description| description.stamp.source.bytes),
            architecture: description.map(|description| description.stamp.architecture.clone()),
            not_exact: not_exact(stored).map_err(|error| error.at_path(path))?,
            restored_name: name(source_name.as_deref(), form),
            usable_name: name(None, Form::File),
            source_name,
        })
    }
}

fn bits(bytes: u64, weights: u64) -> f64 {
    bytes as f64 * 8.0 / weights.max(1) as f64
}

fn not_exact(stored: &Stored) -> Result<Option<String>> {
    let Some(description) = &stored.description else {
        let reason = "it does not say what it was made from: it was written with an official header, or by another tool";
        return Ok(Some(reason.to_owned()));
    };
    match Parts::new(stored, description)?.require_all(description) {
        Ok(()) => Ok(None),
        Err(Error {
            code: Code::NotRestorable,
            message,
            ..
        }) => Ok(Some(message)),
        Err(error) => Err(error),
    }
}
