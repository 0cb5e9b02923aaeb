//! Which tensors of a file form DF11 units, and whether their sizes fit together.

use std::collections::BTreeMap;

use df11_codec::{
    UnitLayout,
    limits::{CHUNK_BYTES, GAP_BYTES_PER_CHUNK, MAX_UNIT_WEIGHTS},
};
use safetensors::Dtype;

use super::unit_bytes::{Fault, MAX_LUT_ROWS, ReadAt, UnitBytes};
use crate::{
    error::{Code, Error},
    header::{Header, TensorInfo},
    output::UnitPlace,
};

/// The tensors of a unit, in the order of their names.
pub const FIELDS: [&str; 6] = [
    "encoded_exponent",
    "gaps",
    "luts",
    "output_positions",
    "sign_mantissa",
    "split_positions",
];
/// Those of which any one shows that a unit was meant.
const TELLING: [usize; 3] = [0, 3, 4];

/// A unit whose tensors fit together, by their sizes.
#[derive(Clone, Debug)]
pub struct StoredUnit {
    /// Its module path.
    pub name: String,
    /// Its tensors' indices in the header, in the order of their names.
    pub tensors: [usize; 6],
    /// Where they begin in the file's data.
    pub place: UnitPlace,
    /// Their sizes; the number of bits is not known.
    pub layout: UnitLayout,
    /// Tensors that were concatenated.
    pub members: u64,
}

impl StoredUnit {
    /// Its tensors in the file that `read` reads; `fault` says what is wrong with them.
    pub fn bytes<'a>(&'a self, read: ReadAt<'a>, fault: Fault<'a>) -> UnitBytes<'a> {
        UnitBytes {
            read,
            place: self.place,
            layout: &self.layout,
            fault,
        }
    }
}

/// The units of a file, in the order of their names; and what is wrong with the others.
pub fn find(header: &Header) -> (Vec<StoredUnit>, Vec<Error>) {
    let mut found: BTreeMap<&str, [Option<usize>; 6]> = BTreeMap::new();
    for (index, tensor) in header.tensors.iter().enumerate() {
        let Some((unit, field)) = tensor.name.rsplit_once('.') else {
            continue;
        };
        if let Some(field) = FIELDS.iter().position(|&name| name == field) {
            found.entry(unit).or_default()[field] = Some(index);
        }
    }
    let meant =
        |tensors: &[Option<usize>; 6]| TELLING.iter().any(|&field| tensors[field].is_some());
    let (mut units, mut faults) = (Vec::new(), Vec::new());
    for (name, tensors) in found.into_iter().filter(|(_, tensors)| meant(tensors)) {
        match unit(header, name, tensors) {
            Ok(unit) => units.push(unit),
            Err(error) => error.in_unit(name).add_to(&mut faults),
        }
    }
    (units, faults)
}

fn unit(header: &Header, name: &str, tensors: [Option<usize>; 6]) -> Result<StoredUnit, Error> {
    let mut indices = [0; 6];
    for (field, index) in tensors.into_iter().enumerate() {
        indices[field] =
            index.ok_or_else(|| fault(&format!("its tensor {} is missing", FIELDS[field])))?;
    }
    let infos = indices.map(|index| &header.tensors[index]);
    let [bits, gaps, luts, positions, sign_mantissa, split] = infos;
    for (tensor, field) in infos.into_iter().zip(FIELDS) {
        let (dtype, sides) = match field {
            "split_positions" => (Dtype::I64, 1),
            "luts" => (Dtype::U8, 2),
            _ => (Dtype::U8, 1),
        };
        if tensor.dtype != dtype || tensor.shape.len() != sides {
            let message = format!("it is {} {:?}", tensor.dtype, tensor.shape);
            return Err(fault(&message).in_tensor(&tensor.name));
        }
    }
    let layout = UnitLayout {
        weights: sign_mantissa.bytes(),
        bits: 0,
        lut_rows: luts.shape[0],
        encoded_exponent_bytes: bits.bytes(),
        chunks: bits.bytes().div_ceil(CHUNK_BYTES),
        gaps_bytes: gaps.bytes(),
        position_entries: positions.bytes() / 4,
    };
    let sizes = [
        (
            bits,
            (1..=MAX_UNIT_WEIGHTS).contains(&layout.encoded_exponent_bytes),
        ),
        (
            sign_mantissa,
            (1..=MAX_UNIT_WEIGHTS).contains(&layout.weights),
        ),
        (
            gaps,
            layout.gaps_bytes == layout.chunks * GAP_BYTES_PER_CHUNK,
        ),
        (
            luts,
            luts.shape[1] == 256 && (2..=MAX_LUT_ROWS as u64).contains(&layout.lut_rows),
        ),
        (
            positions,
            positions.bytes() % 4 == 0
                && (layout.chunks..=layout.chunks + 1).contains(&layout.position_entries),
        ),
        // A code has 1 to 32 bits, and the last one ends in the last byte.
        (
            bits,
            layout.weights.div_ceil(8) <= layout.encoded_exponent_bytes
                && layout.encoded_exponent_bytes <= layout.weights * 4,
        ),
    ];
    if let Some((tensor, _)) = sizes.iter().find(|(_, fits)| !fits) {
        let message = format!(
            "its size {:?} does not fit {} weights in {} bytes of codes",
            tensor.shape, layout.weights, layout.encoded_exponent_bytes
        );
        return Err(fault(&message).in_tensor(&tensor.name));
    }
    let start = |tensor: &TensorInfo| tensor.start;
    Ok(StoredUnit {
        name: name.to_owned(),
        tensors: indices,
        place: UnitPlace {
            encoded_exponent: start(bits),
            gaps: start(gaps),
            luts: start(luts),
            output_positions: start(positions),
            sign_mantissa: start(sign_mantissa),
            split_positions: start(split),
        },
        layout,
        members: split.elements() + 1,
    })
}

/// A unit that cannot be right.
pub fn fault(message: &str) -> Error {
    Error::new(Code::Structure, message)
        .hint("The file is damaged or was not finished: make it again, or get a sound copy.")
}
