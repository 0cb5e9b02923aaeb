//! What the restored file will be: its header, and where each of its tensors comes from.

use std::collections::{HashMap, HashSet};

use safetensors::Dtype;

use crate::{
    error::{Code, Error, Result},
    file_name,
    header::{self, Header, MAX_HEADER_BYTES, TensorEntry},
    output::{FILE_SPAN, FileHeader, FileNames, manifest::KEY_PREFIX},
    stored::{
        Stored,
        description::Description,
        model::Weight,
        parts::{Member, Parts},
        units::fault,
    },
};

/// The restored file.
pub struct Outline {
    /// Its header.
    pub header: Header,
    /// The header's JSON text; of a folder, that of the list of its files.
    pub json: Vec<u8>,
    /// Its files, in the order of their data.
    pub files: Vec<OutlineFile>,
    /// A folder's other files: name and text. Of a file none.
    pub texts: Option<Vec<(String, String)>>,
    /// Where its tensors come from.
    pub parts: Parts,
    /// The bytes of the tensors that were kept in the metadata.
    pub kept: Vec<u8>,
    /// xxh3 of each tensor, none where it was not read; empty where the file tells none.
    pub hashes: Vec<Option<u64>>,
}

/// One of the files that are restored.
pub struct OutlineFile {
    /// Its name in a folder.
    pub name: String,
    /// Its header's JSON text.
    pub json: Vec<u8>,
    /// Where its data begins in that of all files.
    pub start: u64,
}

impl Outline {
    /// The very source.
    ///
    /// # Errors
    /// `E_STRUCTURE` where a folder would hold a file of a name that is none, or two of one name.
    pub fn source(description: Description, parts: Parts) -> Result<Self> {
        let mut start = 0;
        let files = description.files.into_iter().map(|file| {
            let json = file.header.into_bytes();
            let begin = start;
            start += file.data_bytes;
            OutlineFile {
                name: file.name,
                json,
                start: begin,
            }
        });
        let mut files: Vec<_> = files.collect();
        let texts = (!files.is_empty()).then_some(description.texts);
        if files.is_empty() {
            files.push(only(description.header_json.clone()));
        }
        let outline = Self {
            files,
            texts,
            header: description.header,
            json: description.header_json,
            parts,
            kept: description.dropped.unwrap_or_default(),
            hashes: description.source,
        };
        outline.check_names()?;
        Ok(outline)
    }

    /// Names are text from a file: in a folder each must be that of a file, and none that of two.
    fn check_names(&self) -> Result<()> {
        let Some(texts) = &self.texts else {
            return Ok(());
        };
        let mut taken = HashSet::new();
        let names = self.files.iter().map(|file| &file.name);
        for name in names.chain(texts.iter().map(|(name, _)| name)) {
            let complaint = file_name::complaint(name);
            let twice = !taken.insert(file_name::folded(name));
            let complaint = complaint.or(twice.then_some("another file has it"));
            if let Some(why) = complaint {
                let message =
                    format!("its source had a file called {name:?}, which cannot be: {why}");
                return Err(fault(&message));
            }
        }
        Ok(())
    }

    /// The names of a folder's files; none for a file.
    pub fn names(&self) -> Option<FileNames> {
        let tensors = self.files.iter().map(|file| file.name.clone());
        let others =
            |texts: &[(String, String)]| texts.iter().map(|(name, _)| name.clone()).collect();
        self.texts.as_ref().map(|texts| FileNames {
            tensors: tensors.collect(),
            others: others(texts),
        })
    }

    /// The address of a byte of the data of all files, in what is written.
    pub fn address(&self, offset: u64) -> u64 {
        let behind = self.files.partition_point(|file| file.start <= offset);
        let number = behind.saturating_sub(1);
        let file = &self.files[number];
        number as u64 * FILE_SPAN + 8 + file.json.len() as u64 + (offset - file.start)
    }

    /// The headers of all files.
    pub fn headers(&self) -> Vec<FileHeader> {
        let ends = self.files.iter().skip(1).map(|file| file.start);
        let ends = ends.chain([self.header.data_bytes]);
        let files = self.files.iter().zip(ends).zip(0..);
        files
            .map(|((file, end), number)| {
                let length = (file.json.len() as u64).to_le_bytes();
                let header = [&length, file.json.as_slice()].concat();
                FileHeader {
                    start: number * FILE_SPAN,
                    bytes: header.len() as u64 + end - file.start,
                    header,
                }
            })
            .collect()
    }

    /// A checkpoint of the model: the `weights` of each unit, in the order of the file's units, and its other tensors as they are. In the official order,
    /// in which every tensor is aligned.
    ///
    /// # Errors
    /// `E_NAME_COLLISION`; `E_NOT_RESTORABLE` where its header would be longer than any reader takes.
    pub fn checkpoint(stored: &Stored, weights: &[Vec<Weight>]) -> Result<Self> {
        let tensors = &stored.file.header().tensors;
        let others = stored.others.iter().map(|&index| &tensors[index]);
        let others = others.map(|tensor| TensorEntry {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            bytes: tensor.bytes(),
        });
        let members = weights.iter().flatten().map(|weight| TensorEntry {
            name: weight.name.clone(),
            dtype: Dtype::BF16,
            shape: weight.shape.clone(),
            bytes: weight.weights * 2,
        });
        let mut entries: Vec<_> = others.chain(members).collect();
        entries.sort_by(header::official_order);
        let places = places(&entries)?;
        let place = |name: &str| places.get(name).copied().unwrap_or_default();

        let units = weights.iter().map(|weights| {
            let mut first = 0;
            let member = |weight: &Weight| {
                let (tensor, weights) = (place(&weight.name), weight.weights);
                let member = Member {
                    tensor,
                    first,
                    weights,
                };
                first += weights;
                member
            };
            weights.iter().map(member).collect()
        });
        let mut units: Vec<_> = units.enumerate().collect();
        units.sort_by_key(|(index, _)| stored.units[*index].place.encoded_exponent);
        let copied = stored.others.iter();
        let mut copied: Vec<_> = copied
            .map(|&index| (index, place(&tensors[index].name)))
            .collect();
        copied.sort_by_key(|(index, _)| (tensors[*index].start, tensors[*index].end));

        let bytes = header::serialize(&entries, &metadata(stored.file.header()), 0);
        let data_bytes = entries.iter().map(|entry| entry.bytes).sum();
        header::check_with_reference(&bytes, data_bytes)?;
        let json = bytes[8..].to_vec();
        if json.len() as u64 > MAX_HEADER_BYTES {
            let message = "the header of the restored file would be longer than any reader takes";
            return Err(Error::new(Code::NotRestorable, message));
        }
        Ok(Self {
            header: header::parse(&json, data_bytes)?,
            files: vec![only(json.clone())],
            texts: None,
            json,
            parts: Parts {
                units,
                copied,
                kept: Vec::new(),
                missing: Vec::new(),
            },
            kept: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// Size in bytes of all files.
    pub fn bytes(&self) -> u64 {
        let headers = self.files.iter().map(|file| 8 + file.json.len() as u64);
        let texts = self
            .texts
            .iter()
            .flatten()
            .map(|(_, text)| text.len() as u64);
        headers.chain(texts).sum::<u64>() + self.header.data_bytes
    }
}

/// The one file.
fn only(json: Vec<u8>) -> OutlineFile {
    OutlineFile {
        name: String::new(),
        json,
        start: 0,
    }
}

/// Where each tensor stands in the header.
fn places(entries: &[TensorEntry]) -> Result<HashMap<&str, usize>> {
    let mut places = HashMap::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        if places.insert(entry.name.as_str(), place).is_some() {
            let message = "two tensors of the restored file would have this name";
            return Err(Error::new(Code::NameCollision, message)
                .in_tensor(&entry.name)
                .hint("The file holds it compressed and as it is, or twice compressed: make it again."));
        }
    }
    Ok(places)
}

/// What the file's metadata says besides its own description, and the format that some readers ask a checkpoint for.
fn metadata(header: &Header) -> Vec<(String, String)> {
    let entries = header.metadata.iter();
    let foreign = entries.filter(|(key, _)| !key.starts_with(KEY_PREFIX));
    let mut metadata: Vec<_> = foreign.cloned().collect();
    if !metadata.iter().any(|(key, _)| key == "format") {
        metadata.push(("format".to_owned(), "pt".to_owned()));
    }
    metadata
}
