//! Where each tensor of the result lies.

use df11_codec::{UnitCode, UnitLayout};
use safetensors::Dtype;

use crate::{
    header::{TensorEntry, official_order, serialize},
    plan::{Plan, UnitPlan},
};

/// File offsets of one unit's six tensors, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitPlace {
    /// Of `encoded_exponent`.
    pub encoded_exponent: u64,
    /// Of `gaps`.
    pub gaps: u64,
    /// Of `luts`.
    pub luts: u64,
    /// Of `output_positions`.
    pub output_positions: u64,
    /// Of `sign_mantissa`.
    pub sign_mantissa: u64,
    /// Of `split_positions`.
    pub split_positions: u64,
}

/// Which tensor of the plan an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Field number `1` of unit number `0`.
    Unit(usize, usize),
    /// A passthrough tensor.
    Passthrough(usize),
}

/// The tensors of the result in file order, and where they lie.
#[derive(Clone, Debug)]
pub struct FileMap {
    entries: Vec<(TensorEntry, Role)>,
    data_start: u64,
    data_bytes: u64,
    units: Vec<Option<UnitPlace>>,
    passthrough: Vec<u64>,
}

/// The tensors of a unit with this layout, in the order of their names. An unknown layout gives shapes of zero.
pub fn unit_tensors(unit: &UnitPlan, layout: Option<&UnitLayout>) -> [TensorEntry; 6] {
    let entry = |field: &str, dtype: Dtype, shape: &[u64]| TensorEntry {
        name: format!("{}.{field}", unit.name),
        dtype,
        shape: shape.to_vec(),
        bytes: shape.iter().product::<u64>() * (dtype.bitsize() / 8) as u64,
    };
    let sizes = |size: fn(&UnitLayout) -> u64| layout.map_or(0, size);
    [
        entry(
            "encoded_exponent",
            Dtype::U8,
            &[sizes(|layout| layout.encoded_exponent_bytes)],
        ),
        entry("gaps", Dtype::U8, &[sizes(|layout| layout.gaps_bytes)]),
        entry("luts", Dtype::U8, &[sizes(|layout| layout.lut_rows), 256]),
        entry(
            "output_positions",
            Dtype::U8,
            &[sizes(|layout| layout.position_entries * 4)],
        ),
        entry("sign_mantissa", Dtype::U8, &[unit.weights]),
        entry(
            "split_positions",
            Dtype::I64,
            &[unit.members.len() as u64 - 1],
        ),
    ]
}

impl FileMap {
    /// The map of a file in the official order, which needs every unit's code.
    pub fn official(plan: &Plan, codes: &[&UnitCode]) -> Self {
        let units = plan.units.iter().zip(codes).enumerate();
        let mut entries: Vec<_> = units
            .flat_map(|(index, (unit, code))| {
                with_roles(index, unit_tensors(unit, Some(code.layout())))
            })
            .chain(passthrough(plan))
            .collect();
        entries.sort_by(|(a, _), (b, _)| official_order(a, b));
        let mut map = Self::new(plan, 0);
        map.data_start = map.serialize_entries(&entries, &[]).len() as u64;
        for (entry, role) in entries {
            map.push(entry, role);
        }
        map
    }

    /// The map of a self-describing file before any unit is known: what does not depend on codes, behind `header_bytes` reserved for
    /// the header. Units are added as they become known.
    pub fn self_describing(plan: &Plan, header_bytes: u64) -> Self {
        let splits = plan.units.iter().enumerate().flat_map(|(index, unit)| {
            with_roles(index, unit_tensors(unit, None))
                .into_iter()
                .skip(5)
        });
        let mut entries: Vec<_> = splits.chain(passthrough(plan)).collect();
        entries.sort_by(|(a, _), (b, _)| {
            (a.dtype == Dtype::U8)
                .cmp(&(b.dtype == Dtype::U8))
                .then_with(|| official_order(a, b))
        });
        let mut map = Self::new(plan, header_bytes);
        for (entry, role) in entries {
            map.push(entry, role);
        }
        map
    }

    fn new(plan: &Plan, data_start: u64) -> Self {
        let (units, passthrough) = (
            vec![None; plan.units.len()],
            vec![0; plan.passthrough.len()],
        );
        Self {
            entries: Vec::new(),
            data_start,
            data_bytes: 0,
            units,
            passthrough,
        }
    }

    /// Gives unit number `index` its place, where it has none yet.
    pub fn place_unit(&mut self, plan: &Plan, index: usize, layout: &UnitLayout) -> UnitPlace {
        // No tensor lies at the start of the file: 0 means not placed yet.
        if self.units[index].is_none_or(|place| place.encoded_exponent == 0) {
            let tensors = with_roles(index, unit_tensors(&plan.units[index], Some(layout)));
            tensors
                .into_iter()
                .take(5)
                .for_each(|(entry, role)| self.push(entry, role));
        }
        self.units[index].unwrap_or_default()
    }

    fn push(&mut self, entry: TensorEntry, role: Role) {
        let offset = self.data_start + self.data_bytes;
        self.data_bytes += entry.bytes;
        match role {
            Role::Passthrough(index) => self.passthrough[index] = offset,
            Role::Unit(index, field) => {
                let place = self.units[index].get_or_insert_default();
                *[
                    &mut place.encoded_exponent,
                    &mut place.gaps,
                    &mut place.luts,
                    &mut place.output_positions,
                    &mut place.sign_mantissa,
                    &mut place.split_positions,
                ][field] = offset;
            }
        }
        self.entries.push((entry, role));
    }

    /// File offset of passthrough tensor number `index`.
    pub fn passthrough_offset(&self, index: usize) -> u64 {
        self.passthrough[index]
    }

    /// Bytes of data so far.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Size of the whole file so far.
    pub fn file_bytes(&self) -> u64 {
        self.data_start + self.data_bytes
    }

    /// The tensors in file order.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorEntry> {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// Hashes in file order, from those of each unit's fields (by name) and of the passthrough tensors.
    pub fn hashes_in_order(&self, units: &[[u64; 6]], passthrough: &[u64]) -> Vec<u64> {
        let hash = |role: &Role| match *role {
            Role::Unit(unit, field) => units[unit][field],
            Role::Passthrough(tensor) => passthrough[tensor],
        };
        self.entries.iter().map(|(_, role)| hash(role)).collect()
    }

    /// The header, as long as the space before the data.
    pub fn header(&self, metadata: &[(String, String)]) -> Vec<u8> {
        self.serialize_entries(&self.entries, metadata)
    }

    fn serialize_entries(
        &self,
        entries: &[(TensorEntry, Role)],
        metadata: &[(String, String)],
    ) -> Vec<u8> {
        let tensors: Vec<_> = entries.iter().map(|(entry, _)| entry.clone()).collect();
        serialize(&tensors, metadata, self.data_start)
    }
}

fn with_roles(index: usize, tensors: [TensorEntry; 6]) -> Vec<(TensorEntry, Role)> {
    tensors
        .into_iter()
        .enumerate()
        .map(|(field, entry)| (entry, Role::Unit(index, field)))
        .collect()
}

fn passthrough(plan: &Plan) -> impl Iterator<Item = (TensorEntry, Role)> {
    plan.passthrough.iter().enumerate().map(|(index, tensor)| {
        let entry = TensorEntry {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            bytes: tensor.bytes,
        };
        (entry, Role::Passthrough(index))
    })
}
