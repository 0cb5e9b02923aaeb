//! Reads a header. Everything that the format does not allow is an error with the tensor's name.

use std::{collections::HashSet, fmt};

use safetensors::Dtype;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{Header, TensorInfo};
use crate::error::{Code, Error, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// A JSON object as a list, so that a name given twice is seen.
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct PairsVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(std::marker::PhantomData))
    }
}

/// One entry of the header's object. `__metadata__` and tensors are told apart by their content, then checked by name.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawEntry {
    Tensor(RawTensor),
    Metadata(Option<Pairs<String>>),
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
    let Pairs(pairs) = serde_json::from_slice::<Pairs<RawEntry>>(json)
        .map_err(|error| fault(format!("the header is not valid: {error}")))?;

    let mut names = HashSet::with_capacity(pairs.len());
    let mut tensors = Vec::with_capacity(pairs.len());
    let mut metadata = Vec::new();
    for (name, entry) in pairs {
        if !names.insert(name.clone()) {
            return Err(fault("the name occurs twice in the header".into()).in_tensor(&name));
        }
        match (name.as_str(), entry) {
            ("__metadata__", RawEntry::Metadata(entries)) => {
                metadata = entries.map(|Pairs(entries)| entries).unwrap_or_default();
            }
            ("__metadata__", RawEntry::Tensor(_)) | (_, RawEntry::Metadata(_)) => {
                return Err(
                    fault("the entry is neither a tensor nor metadata".into()).in_tensor(&name)
                );
            }
            (_, RawEntry::Tensor(raw)) => {
                tensors
                    .push(tensor(&name, &raw).map_err(|message| fault(message).in_tensor(&name))?);
            }
        }
    }
    let mut keys = HashSet::new();
    if let Some((key, _)) = metadata.iter().find(|(key, _)| !keys.insert(key)) {
        return Err(fault(format!("the metadata key {key} occurs twice")));
    }
    let described =
        check_coverage(&tensors).map_err(|(name, message)| fault(message).in_tensor(&name))?;
    if described > data_bytes {
        let message =
            format!("the file is truncated: it has {data_bytes} of {described} bytes of data");
        return Err(Error::new(Code::Truncated, message).hint("Download or copy it again."));
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

fn tensor(name: &str, raw: &RawTensor) -> std::result::Result<TensorInfo, String> {
    let dtype: Dtype = serde_json::from_value(raw.dtype.clone().into())
        .map_err(|_| format!("unknown dtype {}", raw.dtype))?;
    let elements = raw
        .shape
        .iter()
        .try_fold(1_u64, |product, &side| product.checked_mul(side));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bitsize() as u64));
    let bits = bits.ok_or_else(|| format!("shape {:?} is too large", raw.shape))?;
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
    Ok(TensorInfo {
        name: name.to_owned(),
        dtype,
        shape: raw.shape.clone(),
        start,
        end,
    })
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
