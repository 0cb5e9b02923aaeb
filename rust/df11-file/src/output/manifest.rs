//! What a self-describing file says about itself in `__metadata__`. Loaders ignore it; verify, restore and skip rest on it.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use df11_codec::UnitLayout;
use flate2::{Compression, write::ZlibEncoder};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FileMap;
use crate::{
    error::{Code, Error, Result},
    hash::xxh3_64,
    options::Verify,
    plan::Plan,
    source::{CONFIG_NAME, Source, SourceIdentity},
};

/// Value of the key `df11.format`: the name and version of this layout of metadata.
pub const FORMAT: &str = "df11-self-describing/1";
/// What our keys begin with.
pub const KEY_PREFIX: &str = "df11.";
/// Dropped tensors are kept in the metadata where all of them together have at most so many bytes.
pub const MAX_KEPT_DROPPED: u64 = 64 * 1024;
/// What a description unpacks to is at most so many bytes, and this share of the file: a small file must not take much memory.
const MAX_DESCRIBED: u64 = 2 << 20;
const DESCRIBED_SHARE: u64 = 8;
/// Present where the result is a folder: hashes stand in the order of the tensors' names.
pub const LAYOUT_KEY: &str = "df11.layout";
/// Its value.
pub const FOLDER: &str = "folder";
/// Above this header size ComfyUI's metadata view stays empty, so the source's own entries, which its header holds too, are left out.
const MAX_HEADER: u64 = 1 << 20;
/// Stands for a hash that is not known.
const NO_HASH: &str = "................";

/// The xxh3 (64 bits) of tensors.
#[derive(Clone, Debug, Default)]
pub struct Hashes {
    /// Of the result's tensors, in file order.
    pub tensors: Vec<u64>,
    /// Of the source's tensors, in its header's order; none where a tensor was not read.
    pub source: Vec<Option<u64>>,
}

/// What rounding did to the weights that were not BF16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// There was nothing to round.
    None,
    /// It changed no value.
    Exact,
    /// It changed some.
    Changed,
}

impl Rounding {
    /// The value of the key `df11.cast`.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Exact => Some("exact"),
            Self::Changed => Some("rounded"),
        }
    }
}

/// The part of the metadata that tells whether a file is the result of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// State of the source file.
    #[serde(flatten)]
    pub source: SourceIdentity,
    /// Architecture id.
    pub architecture: String,
    /// The cast option.
    pub cast: String,
    /// The verify option.
    pub verify: String,
    /// xxh3 of the name map: which source tensors went where, and in which order.
    pub names_xxh3: String,
    /// xxh3 of a folder's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_xxh3: Option<String>,
}

impl Stamp {
    /// The stamp of a plan's result.
    pub fn of(plan: &Plan) -> Self {
        Self {
            source: plan.source.identity().clone(),
            architecture: plan.architecture.id.clone(),
            cast: plan.options.cast.as_str().to_owned(),
            verify: plan.options.verify.as_str().to_owned(),
            names_xxh3: format!("{:016x}", xxh3_64(names(plan).as_bytes())),
            config_xxh3: plan
                .folder
                .as_ref()
                .map(|folder| format!("{:016x}", xxh3_64(folder.config.as_bytes()))),
        }
    }

    /// Whether the file of this stamp is what `wanted` asks for. A verified file serves also where no verification was asked for.
    pub fn serves(&self, wanted: &Self) -> bool {
        let verified = self.verify == Verify::Full.as_str();
        let verify = if verified {
            &wanted.verify
        } else {
            &self.verify
        };
        Self {
            verify: verify.clone(),
            ..self.clone()
        } == *wanted
    }
}

/// The metadata of one result.
#[derive(Debug)]
pub struct Manifest {
    entries: Vec<(String, String)>,
    /// Space to reserve for the header, in bytes.
    pub header_bytes: u64,
}

impl Manifest {
    /// The metadata of `plan`'s result, apart from the hashes. Reads small dropped tensors.
    ///
    /// # Errors
    /// Those of the source; `E_OPTION` where there is too much to describe for readers to accept it.
    pub fn new(plan: &Plan) -> Result<Self> {
        let header = plan.source.header();
        let names = names(plan);
        let described = names.len().max(plan.source.header_json().len()) as u64;
        if described > most_described(plan.passthrough_bytes() + plan.unit_bytes() / 2) {
            let message = format!(
                "its header takes {described} bytes to describe, too many beside so little data"
            );
            return Err(Error::new(Code::Option, message)
                .hint("Choose the official header, which describes nothing.")
                .at_path(plan.source.path()));
        }
        let stamp = serde_json::to_string(&Stamp::of(plan)).unwrap_or_default();
        let entry = |key: &str, value: String| (format!("{KEY_PREFIX}{key}"), value);
        let mut entries = vec![
            entry("format", FORMAT.to_owned()),
            entry(
                "tool",
                format!("dfloat11-compress {}", env!("CARGO_PKG_VERSION")),
            ),
            entry("stamp", stamp),
            entry("source_name", plan.source.name()),
            entry("source_header", pack(plan.source.header_json())),
            entry("names", pack(names.as_bytes())),
        ];
        if let Some(bytes) = dropped_bytes(plan)? {
            entries.push(entry("dropped", pack(&bytes)));
        }
        if plan.source.folder().is_some() {
            let texts = json!(texts(&plan.source)).to_string();
            entries.push(entry("source_folder", pack(texts.as_bytes())));
        }
        let mut usual = plan.plain_metadata();
        if plan.folder.is_some() {
            entries.push(entry("layout", FOLDER.to_owned()));
        }
        let foreign = header
            .metadata
            .iter()
            .filter(|(key, _)| !key.starts_with(KEY_PREFIX));
        let foreign: Vec<_> = foreign.cloned().collect();
        usual.retain(|(key, _)| foreign.iter().all(|(other, _)| other != key));
        let mut manifest = Self {
            entries: [usual.clone(), foreign, entries.clone()].concat(),
            header_bytes: 0,
        };
        manifest.header_bytes = manifest.longest_header(plan);
        if manifest.header_bytes > MAX_HEADER {
            manifest.entries = [usual, entries].concat();
            manifest.header_bytes = manifest.longest_header(plan);
        }
        Ok(manifest)
    }

    /// The finished metadata of a result with this map.
    pub fn metadata(
        &self,
        map: &FileMap,
        hashes: &Hashes,
        rounding: Rounding,
    ) -> Vec<(String, String)> {
        let hex = |hash: &u64| format!("{hash:016x}");
        let mut tensors: Vec<_> = map.tensors().zip(&hashes.tensors).collect();
        if self.entries.iter().any(|(key, _)| key == LAYOUT_KEY) {
            // Files of a folder may be renamed and merged.
            tensors.sort_by_key(|(tensor, _)| tensor.name.as_bytes());
        }
        let tensors: String = tensors.into_iter().map(|(_, hash)| hex(hash)).collect();
        let source: String = hashes
            .source
            .iter()
            .map(|hash| hash.as_ref().map_or(NO_HASH.to_owned(), hex))
            .collect();
        let value = json!({ "tensors": tensors, "source": source }).to_string();
        let cast = rounding.as_str();
        let cast = cast.map(|cast| (format!("{KEY_PREFIX}cast"), cast.to_owned()));
        let mut metadata = self.entries.clone();
        metadata.extend(cast);
        metadata.push((format!("{KEY_PREFIX}xxh3"), value));
        metadata
    }

    /// The header's size where every unit is as large as any code can make it.
    fn longest_header(&self, plan: &Plan) -> u64 {
        let mut map = FileMap::begin(plan, Some(0)).unwrap_or_else(|| FileMap::outline(plan));
        for (index, unit) in plan.units.iter().enumerate() {
            map.place(
                plan,
                index,
                &UnitLayout::new(unit.weights, unit.weights * 32 + 7, 32, 18),
            );
        }
        let hashes = Hashes {
            tensors: vec![0; map.tensors().count()],
            source: vec![None; plan.source.header().tensors.len()],
        };
        let rounding = if plan.rounds() {
            Rounding::Changed
        } else {
            Rounding::None
        };
        let metadata = self.metadata(&map, &hashes, rounding);
        map.files()[0].header(&metadata).len() as u64
    }
}

/// Most bytes that each part of a description unpacks to, in a file of so many bytes.
pub fn most_described(file_bytes: u64) -> u64 {
    MAX_DESCRIBED + file_bytes / DESCRIBED_SHARE
}

/// The name map as JSON: prefix, units with their members, passthrough and dropped tensors, each by its name here and in the source.
fn names(plan: &Plan) -> String {
    let header = plan.source.header();
    let name = |tensor: usize| header.tensors[tensor].name.as_str();
    let units: Vec<_> = plan
        .units
        .iter()
        .map(|unit| {
            let members: Vec<_> = unit
                .members
                .iter()
                .map(|member| (&member.name, name(member.tensor)))
                .collect();
            (&unit.name, members)
        })
        .collect();
    let passthrough: Vec<_> = plan
        .passthrough
        .iter()
        .map(|tensor| (&tensor.name, name(tensor.tensor)))
        .collect();
    let dropped: Vec<_> = plan.dropped.iter().map(|&tensor| name(tensor)).collect();
    let left_out = plan.tied.iter().filter(|tied| tied.is_left_out);
    let tied: Vec<_> = left_out
        .map(|tied| (name(tied.tensor), name(tied.other)))
        .collect();
    let mut names = json!({ "prefix": plan.prefix, "units": units, "passthrough": passthrough, "dropped": dropped });
    if !tied.is_empty() {
        names["tied"] = json!(tied);
    }
    names.to_string()
}

/// The texts of a source that are no tensors, each with its name: the index and the configuration of a folder.
pub fn texts(source: &Source) -> Vec<(String, String)> {
    let Some(folder) = source.folder() else {
        return Vec::new();
    };
    let index = folder.index.as_ref();
    let index = index.map(|(name, text)| (name.clone(), text.to_string()));
    let config = folder.config.as_ref();
    let config = config.map(|config| (CONFIG_NAME.to_owned(), config.text.to_string()));
    index.into_iter().chain(config).collect()
}

fn pack(bytes: &[u8]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to a Vec does not fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    BASE64.encode(packed.unwrap_or_default())
}

/// The bytes of all dropped tensors, one behind the other, where they are few.
fn dropped_bytes(plan: &Plan) -> Result<Option<Vec<u8>>> {
    let tensors: Vec<_> = plan
        .dropped
        .iter()
        .map(|&tensor| &plan.source.header().tensors[tensor])
        .collect();
    let total: u64 = tensors.iter().map(|tensor| tensor.bytes()).sum();
    if tensors.is_empty() || total > MAX_KEPT_DROPPED {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(total as usize);
    for tensor in tensors {
        let start = bytes.len();
        bytes.resize(start + tensor.bytes() as usize, 0);
        plan.source.read(&mut bytes[start..], tensor.start)?;
    }
    Ok(Some(bytes))
}
