//! What a self-describing file says about itself, read back from its metadata. Believed only as far as it fits the file.

use std::{collections::HashMap, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use flate2::read::ZlibDecoder;
use safetensors::Dtype;
use serde::Deserialize;

use super::units::fault;
use crate::{
    error::Result,
    hash::xxh3_64,
    header::{Header, ShardText, parse_text},
    options::Cast,
    output::manifest::{
        FOLDER, FORMAT, KEY_PREFIX, LAYOUT_KEY, MAX_KEPT_DROPPED, Rounding, Stamp, most_described,
    },
};

/// The description.
#[derive(Clone, Debug)]
pub struct Description {
    /// State of the source, and the options of the run that made the file.
    pub stamp: Stamp,
    /// The source's file name, where it is told. Text from a file: not to be used as a path.
    pub source_name: Option<String>,
    /// The source's header.
    pub header: Header,
    /// Its JSON text, or that of the list of its files.
    pub header_json: Vec<u8>,
    /// The files of a source that was a folder.
    pub files: Vec<ShardText>,
    /// Its other files that were kept, name and text. Names are text from a file.
    pub texts: Vec<(String, String)>,
    /// Which source tensors went where.
    pub names: NameMap,
    /// Whether rounding changed no weight of those that were not BF16: widened, they are what they were.
    pub is_exact: bool,
    /// The bytes of the dropped tensors, one behind the other in the name map's order, where they were kept.
    pub dropped: Option<Vec<u8>>,
    /// Whether it is that of a folder.
    pub is_folder: bool,
    /// xxh3 of each tensor of the file, in the order of their data; of a folder, of their names.
    pub tensors: Vec<Option<u64>>,
    /// xxh3 of each tensor of the source, in its header's order; none where it was not read.
    pub source: Vec<Option<u64>>,
}

/// The name map.
#[derive(Clone, Debug, Deserialize)]
pub struct NameMap {
    /// Units with their members in the order in which these are concatenated, each by its name in the model and in the source.
    pub units: Vec<(String, Vec<(String, String)>)>,
    /// Copied tensors, each by its name in the file and in the source.
    pub passthrough: Vec<(String, String)>,
    /// Source tensors that the file does not hold as tensors.
    pub dropped: Vec<String>,
    /// Source tensors that it does not hold because they equal another, and the other.
    #[serde(default)]
    pub tied: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Hashes {
    tensors: String,
    source: String,
}

impl Description {
    /// Whether some weights of its units were not BF16 in the source, so that their hashes there say nothing of the file.
    pub fn was_rounded(&self) -> bool {
        let tensors = self.header.tensors.iter();
        let dtypes: HashMap<_, _> = tensors
            .map(|tensor| (tensor.name.as_str(), tensor.dtype))
            .collect();
        let mut members = self.names.units.iter().flat_map(|(_, members)| members);
        members.any(|(_, source)| dtypes.get(source.as_str()) != Some(&Dtype::BF16))
    }

    /// The description in the header of a file of `file_bytes`; none where it is not a self-describing file.
    ///
    /// # Errors
    /// `E_STRUCTURE` where it cannot be read.
    pub fn read(header: &Header, file_bytes: u64) -> Result<Option<Self>> {
        if header.meta("df11.format") != Some(FORMAT) {
            let ours = |(key, _): &(String, String)| key.starts_with(KEY_PREFIX);
            return match header.metadata.iter().find(|entry| ours(entry)) {
                None => Ok(None),
                Some((key, _)) => Err(fault(&format!(
                    "its metadata has {key}, but no df11.format that is known here"
                ))),
            };
        }
        let value = |key: &str| {
            let found = header.meta(&format!("df11.{key}"));
            found.ok_or_else(|| fault(&format!("its metadata lacks df11.{key}")))
        };
        let unreadable = |key: &str| fault(&format!("its metadata df11.{key} cannot be read"));
        let packed = |key: &str, limit: u64| {
            value(key).and_then(|text| unpack(text, limit).ok_or_else(|| unreadable(key)))
        };
        let limit = most_described(file_bytes);
        let names = packed("names", limit)?;
        let stamp: Stamp =
            serde_json::from_str(value("stamp")?).map_err(|_| unreadable("stamp"))?;
        if stamp.cast.parse::<Cast>().is_err() {
            return Err(fault(&format!(
                "its metadata df11.stamp names a cast that is not known here: {}",
                stamp.cast
            )));
        }
        let header_json = packed("source_header", limit)?;
        for (key, bytes, expected) in [
            ("names", &names, &stamp.names_xxh3),
            ("source_header", &header_json, &stamp.source.header_xxh3),
        ] {
            if format!("{:016x}", xxh3_64(bytes)) != *expected {
                return Err(fault(&format!(
                    "its metadata df11.{key} is not that of its stamp"
                )));
            }
        }
        let (source_header, files) = parse_text(&header_json, stamp.source.bytes)
            .map_err(|_| unreadable("source_header"))?;
        // Short strings take more memory than text: no more of them than the source's tensors need, a unit's name for each at most.
        if quotes(&names) > 8 * source_header.tensors.len() + 64 {
            return Err(fault(
                "its metadata df11.names has more names than its source",
            ));
        }
        let hashes: Hashes =
            serde_json::from_str(value("xxh3")?).map_err(|_| unreadable("xxh3"))?;
        let source = hex(&hashes.source).ok_or_else(|| unreadable("xxh3"))?;
        if source.len() != source_header.tensors.len() {
            return Err(fault(
                "its metadata has not one hash for each tensor of the source",
            ));
        }
        let texts = match header.meta("df11.source_folder") {
            None => Vec::new(),
            Some(text) => {
                let texts = unpack(text, limit);
                let texts = texts.and_then(|texts| serde_json::from_slice(&texts).ok());
                texts.ok_or_else(|| unreadable("source_folder"))?
            }
        };
        let dropped = header
            .meta("df11.dropped")
            .map(|text| unpack(text, MAX_KEPT_DROPPED).ok_or_else(|| unreadable("dropped")))
            .transpose()?;
        Ok(Some(Self {
            stamp,
            source_name: header.meta("df11.source_name").map(str::to_owned),
            header: source_header,
            header_json,
            files,
            texts,
            dropped,
            is_exact: header.meta("df11.cast") == Rounding::Exact.as_str(),
            names: serde_json::from_slice(&names).map_err(|_| unreadable("names"))?,
            is_folder: header.meta(LAYOUT_KEY) == Some(FOLDER),
            tensors: hex(&hashes.tensors).ok_or_else(|| unreadable("xxh3"))?,
            source,
        }))
    }
}

/// What was packed, where it is at most `limit` bytes.
fn unpack(text: &str, limit: u64) -> Option<Vec<u8>> {
    let packed = BASE64.decode(text).ok()?;
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(packed.as_slice())
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (read as u64 <= limit).then_some(bytes)
}

/// Quotes that begin or end a JSON string.
fn quotes(json: &[u8]) -> usize {
    let mut escaped = false;
    let mut count = 0;
    for byte in json {
        count += usize::from(*byte == b'"' && !escaped);
        escaped = *byte == b'\\' && !escaped;
    }
    count
}

/// Hashes of 16 hexadecimal digits each; dots stand for none.
fn hex(text: &str) -> Option<Vec<Option<u64>>> {
    let digits = text.as_bytes().chunks(16);
    digits
        .map(|digits| match std::str::from_utf8(digits).ok()? {
            "................" => Some(None),
            digits if digits.len() == 16 => u64::from_str_radix(digits, 16).ok().map(Some),
            _ => None,
        })
        .collect()
}
