//! Reads a header. Everything that the format does not allow is an error with the tensor's name.

use std::{collections::HashSet, fmt};

use safetensors::Dtype;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

use super::{Header, METADATA, TRUNCATED_HINT, TensorInfo};
use crate::error::{Code, Error, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    #[serde(deserialize_with = "beginning")]
    dtype: String,
    shape: Sides,
    data_offsets: (u64, u64),
}

/// The first letters of a text, more than any dtype has: a text of any length would be kept several times.
fn beginning<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    struct BeginningVisitor;
    impl Visitor<'_> for BeginningVisitor {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
            Ok(text.chars().take(32).collect())
        }
    }
    deserializer.deserialize_str(BeginningVisitor)
}

/// Most sides of a tensor; torch takes 64 where it has to name them, numpy too. Without a limit a list of them fills the memory.
const MAX_SIDES: usize = 256;

/// The sides of a tensor.
struct Sides(Vec<u64>);

impl<'de> Deserialize<'de> for Sides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct SidesVisitor;
        impl<'de> Visitor<'de> for SidesVisitor {
            type Value = Sides;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut sides = Vec::new();
                while let Some(side) = list.next_element()? {
                    if sides.len() == MAX_SIDES {
                        let fault = format!("its shape has more than {MAX_SIDES} sides");
                        return Err(de::Error::custom(fault));
                    }
                    sides.push(side);
                }
                Ok(Sides(sides))
            }
        }
        deserializer.deserialize_seq(SidesVisitor)
    }
}

/// Most entries of metadata: each takes ten times the memory that it takes in the file.
const MAX_METADATA: usize = 1 << 16;

/// A JSON object of strings as a list, so that a key given twice is seen.
struct Strings(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct StringsVisitor;
        impl<'de> Visitor<'de> for StringsVisitor {
            type Value = Strings;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    if pairs.len() == MAX_METADATA {
                        let fault = format!("it has more than {MAX_METADATA} entries of metadata");
                        return Err(de::Error::custom(fault));
                    }
                    pairs.push(pair);
                }
                Ok(Strings(pairs))
            }
        }
        deserializer.deserialize_map(StringsVisitor)
    }
}

/// Reads the header's object. A member's name decides what its value must be; `at` keeps it while the value is read, for messages.
struct Members<'a> {
    at: &'a mut Option<String>,
}

/// The members in order, names given twice included. Of a faulty tensor the name and the fault.
#[derive(Default)]
struct RawHeader {
    tensors: Vec<std::result::Result<TensorInfo, (String, String)>>,
    metadata: Vec<Vec<(String, String)>>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = RawHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut header = RawHeader::default();
        while let Some(name) = map.next_key()? {
            let name: &mut String = self.at.insert(name);
            if name == METADATA {
                let entries: Option<Strings> = map.next_value()?;
                header
                    .metadata
                    .push(entries.map_or_else(Vec::new, |Strings(pairs)| pairs));
            } else {
                let raw = map.next_value()?;
                let name = std::mem::take(name);
                header.tensors.push(tensor(name, raw));
            }
            *self.at = None;
        }
        Ok(header)
    }
}

/// Parses the JSON text of a header (without the 8 length bytes) that describes `data_bytes` bytes of data.
///
/// # Errors
/// `E_HEADER` for every breach of the format; `E_TRUNCATED` or `E_TRAILING_BYTES` where the data has another size.
pub fn parse(json: &[u8], data_bytes: u64) -> Result<Header> {
    let fault = |message: String| {
        Error::new(Code::Header, message)
            .hint("The file is damaged or not a safetensors file; download it again.")
    };
    if json.first() != Some(&b'{') {
        return Err(fault("the header does not begin with '{'".into()));
    }
    let mut at = None;
    let mut text = serde_json::Deserializer::from_slice(json);
    let members = text.deserialize_map(Members { at: &mut at });
    let raw = members
        .and_then(|members| text.end().map(|()| members))
        .map_err(|error| {
            let error = fault(format!("the header is not valid: {error}"));
            at.map_or(error.clone(), |name| error.in_tensor(&name))
        })?;

    let twice = |name: &str| fault("the name occurs twice in the header".into()).in_tensor(name);
    if raw.metadata.len() > 1 {
        return Err(twice(METADATA));
    }
    let mut names = HashSet::with_capacity(raw.tensors.len());
    for tensor in &raw.tensors {
        let name = match tensor {
            Ok(tensor) => &tensor.name,
            Err((name, _)) => name,
        };
        if !names.insert(name) {
            return Err(twice(name));
        }
        if let Err((name, message)) = tensor {
            return Err(fault(message.clone()).in_tensor(name));
        }
    }
    drop(names);
    let tensors: Vec<_> = raw.tensors.into_iter().flatten().collect();
    let metadata = raw.metadata.into_iter().next().unwrap_or_default();
    let mut keys = HashSet::new();
    if let Some((key, _)) = metadata.iter().find(|(key, _)| !keys.insert(key)) {
        return Err(fault(format!("the metadata key {key} occurs twice")));
    }
    let described =
        check_coverage(&tensors).map_err(|(name, message)| fault(message).in_tensor(&name))?;
    if described > data_bytes {
        let message =
            format!("the file is truncated: it has {data_bytes} of {described} bytes of data");
        return Err(Error::new(Code::Truncated, message).hint(TRUNCATED_HINT));
    }
    if described < data_bytes {
        let message = format!("{} bytes follow the last tensor", data_bytes - described);
        return Err(Error::new(Code::TrailingBytes, message)
            .hint("The file is damaged; download it again."));
    }
    Ok(Header {
        tensors,
        metadata,
        data_bytes,
    })
}

/// A tensor, or its name and what is wrong with it.
fn tensor(name: String, raw: RawTensor) -> std::result::Result<TensorInfo, (String, String)> {
    let (start, end) = raw.data_offsets;
    match dtype(&raw) {
        Ok(dtype) => Ok(TensorInfo {
            name,
            dtype,
            shape: raw.shape.0,
            start,
            end,
        }),
        Err(message) => Err((name, message)),
    }
}

/// A tensor's dtype, where its shape and range agree with it.
fn dtype(raw: &RawTensor) -> std::result::Result<Dtype, String> {
    let dtype: Dtype = serde_json::from_value(raw.dtype.clone().into())
        .map_err(|_| format!("unknown dtype {}", raw.dtype))?;
    let elements = raw
        .shape
        .0
        .iter()
        .try_fold(1_u64, |product, &side| product.checked_mul(side));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bitsize() as u64));
    let bits = bits.ok_or_else(|| format!("shape {:?} is too large", raw.shape.0))?;
    let (start, end) = raw.data_offsets;
    if end < start {
        return Err(format!("data_offsets [{start}, {end}] run backwards"));
    }
    if bits % 8 != 0 || end - start != bits / 8 {
        return Err(format!(
            "data_offsets hold {} bytes, dtype and shape need {} bits",
            end - start,
            bits
        ));
    }
    Ok(dtype)
}

/// The size of the data, where the tensors cover it exactly; otherwise a tensor and what is wrong with it.
fn check_coverage(tensors: &[TensorInfo]) -> std::result::Result<u64, (String, String)> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by_key(|tensor| (tensor.start, tensor.end));
    let mut position = 0;
    for tensor in order {
        if tensor.start != position {
            let what = if tensor.start < position {
                "overlaps the tensor before it"
            } else {
                "leaves a hole before it"
            };
            return Err((
                tensor.name.clone(),
                format!("data at byte {} {what}; expected {position}", tensor.start),
            ));
        }
        position = tensor.end;
    }
    Ok(position)
}
