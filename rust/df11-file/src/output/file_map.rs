//! Where each tensor of the result lies.

use df11_codec::UnitLayout;
use safetensors::Dtype;

use super::FILE_SPAN;
use crate::{
    header::{TensorEntry, official_order, serialize},
    options::{Form, HeaderMode},
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

/// Number of `split_positions` among a unit's fields by name: the only one of another dtype, known from the plan.
const SPLIT_POSITIONS: usize = 5;
/// Fields before this one have a side that only the weights decide.
const SIGN_MANTISSA: usize = 4;

/// Which tensor of the plan an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Field number `1` of unit number `0`.
    Unit(usize, usize),
    /// A passthrough tensor.
    Passthrough(usize),
}

/// The tensors of the result in file order, and where they lie. Where it is a folder, offsets are addresses of its [`Output`](super::Output).
#[derive(Clone, Debug)]
pub struct FileMap {
    files: Vec<FileLayout>,
    units: Vec<UnitPlace>,
    passthrough: Vec<u64>,
    /// For each copied tensor the unit in whose file it lies.
    companions: Vec<Option<usize>>,
}

/// The tensors of one file, in order.
#[derive(Clone, Debug, Default)]
pub struct FileLayout {
    entries: Vec<(TensorEntry, Role)>,
    /// The file's first byte.
    start: u64,
    /// Bytes before the data.
    data_start: u64,
    data_bytes: u64,
}

impl FileLayout {
    /// The address of its first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of its data so far.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Bytes of the whole file so far.
    pub fn bytes(&self) -> u64 {
        self.data_start + self.data_bytes
    }

    /// Its tensors, and the address of each.
    fn tensors(&self) -> impl Iterator<Item = (&TensorEntry, Role, u64)> {
        let mut at = self.start + self.data_start;
        self.entries.iter().map(move |(entry, role)| {
            let offset = at;
            at += entry.bytes;
            (entry, *role, offset)
        })
    }

    /// Its header, as long as the space before the data.
    pub fn header(&self, metadata: &[(String, String)]) -> Vec<u8> {
        let tensors: Vec<_> = self
            .entries
            .iter()
            .map(|(entry, _)| entry.clone())
            .collect();
        serialize(&tensors, metadata, self.data_start)
    }
}

/// Stands for a layout that only the weights decide.
pub const UNKNOWN: UnitLayout = UnitLayout {
    weights: 0,
    bits: 0,
    lut_rows: 0,
    encoded_exponent_bytes: 0,
    chunks: 0,
    gaps_bytes: 0,
    position_entries: 0,
};

/// The tensors of a unit with this layout, in the order of their names.
pub fn unit_tensors(unit: &UnitPlan, layout: &UnitLayout) -> [TensorEntry; 6] {
    let entry = |field: &str, dtype: Dtype, shape: &[u64]| TensorEntry {
        name: format!("{}.{field}", unit.name),
        dtype,
        shape: shape.to_vec(),
        bytes: shape.iter().product::<u64>() * (dtype.bitsize() / 8) as u64,
    };
    [
        entry(
            "encoded_exponent",
            Dtype::U8,
            &[layout.encoded_exponent_bytes],
        ),
        entry("gaps", Dtype::U8, &[layout.gaps_bytes]),
        entry("luts", Dtype::U8, &[layout.lut_rows, 256]),
        entry(
            "output_positions",
            Dtype::U8,
            &[layout.position_entries * 4],
        ),
        entry("sign_mantissa", Dtype::U8, &[unit.weights]),
        entry(
            "split_positions",
            Dtype::I64,
            &[unit.members.len() as u64 - 1],
        ),
    ]
}

/// The `split_positions` tensor: cumulative sizes of the members without the last, I64.
pub fn split_positions(unit: &UnitPlan) -> Vec<u8> {
    let mut sum = 0;
    let sums = unit.members[..unit.members.len() - 1].iter().map(|member| {
        sum += member.weights;
        sum
    });
    sums.flat_map(u64::to_le_bytes).collect()
}

impl FileMap {
    /// The map of a plan's result before its first unit is known, behind `header_bytes` reserved for the header of what belongs to no unit; with an official
    /// header none but for a folder with a file for each unit, where no other unit's size counts.
    pub fn begin(plan: &Plan, header_bytes: Option<u64>) -> Option<Self> {
        match (plan.form, header_bytes) {
            (Form::Folder, _) => Some(Self::split(plan, header_bytes)),
            (_, None) => None,
            (_, Some(bytes)) => Some(Self::self_describing(plan, bytes)),
        }
    }

    /// The map of a file in the official order, which needs every unit's layout.
    pub fn official(plan: &Plan, layouts: &[UnitLayout]) -> Self {
        let units = plan.units.iter().zip(layouts).enumerate();
        let entries = units
            .flat_map(|(index, (unit, layout))| with_roles(index, unit_tensors(unit, layout)))
            .chain(passthrough(plan, |_| true));
        let mut map = Self::new(plan, 0);
        map.add_official(0, entries.collect(), &plan.plain_metadata());
        map
    }

    /// The map of a self-describing file before any unit is known: what does not depend on codes, behind `header_bytes` reserved for
    /// the header. Units are added as they become known.
    pub fn self_describing(plan: &Plan, header_bytes: u64) -> Self {
        let splits = plan.units.iter().enumerate().flat_map(|(index, unit)| {
            with_roles(index, unit_tensors(unit, &UNKNOWN))
                .into_iter()
                .skip(SPLIT_POSITIONS)
        });
        let mut entries: Vec<_> = splits.chain(passthrough(plan, |_| true)).collect();
        entries.sort_by(|(a, _), (b, _)| {
            (a.dtype == Dtype::U8)
                .cmp(&(b.dtype == Dtype::U8))
                .then_with(|| official_order(a, b))
        });
        let mut map = Self::new(plan, header_bytes);
        for (entry, role) in entries {
            map.push(0, entry, role);
        }
        map
    }

    /// The map of a folder with a file for each unit: the first file holds what belongs to none.
    fn split(plan: &Plan, header_bytes: Option<u64>) -> Self {
        let mut map = Self::new(plan, header_bytes.unwrap_or(0));
        let rest = passthrough(plan, |tensor| map.companions[tensor].is_none()).collect();
        map.add_official(0, rest, &plan.plain_metadata());
        // By its number among all units, whichever are left as they are: that tells the file's name.
        map.files.extend(plan.units.iter().map(|unit| FileLayout {
            start: (unit.number as u64 + 1) * FILE_SPAN,
            ..FileLayout::default()
        }));
        map
    }

    fn new(plan: &Plan, data_start: u64) -> Self {
        let of_units = match plan.form {
            Form::Folder => 0,
            Form::File | Form::FolderSingle => plan.units.len() * 6,
        };
        Self {
            files: vec![FileLayout {
                // At once: growing would ask for memory between units.
                entries: Vec::with_capacity(of_units + plan.passthrough.len()),
                data_start,
                ..FileLayout::default()
            }],
            units: vec![UnitPlace::default(); plan.units.len()],
            passthrough: vec![0; plan.passthrough.len()],
            companions: plan.companions(),
        }
    }

    /// Gives an empty file all its tensors, in the official order, behind a header that has exactly the length it needs, or more where more is reserved.
    fn add_official(
        &mut self,
        file: usize,
        mut entries: Vec<(TensorEntry, Role)>,
        metadata: &[(String, String)],
    ) {
        entries.sort_by(|(a, _), (b, _)| official_order(a, b));
        let layout = &mut self.files[file];
        layout.entries = entries;
        layout.data_start = layout.header(metadata).len() as u64;
        for (entry, role) in std::mem::take(&mut layout.entries) {
            self.push(file, entry, role);
        }
    }

    /// Places the tensors of unit number `index` whose sizes have become known.
    pub fn place(&mut self, plan: &Plan, index: usize, layout: &UnitLayout) {
        let tensors = unit_tensors(&plan.units[index], layout);
        if plan.form == Form::Folder {
            let mut entries = with_roles(index, tensors);
            let companions = &self.companions;
            entries.extend(passthrough(plan, |tensor| {
                companions[tensor] == Some(index)
            }));
            return self.add_official(index + 1, entries, &[]);
        }
        for (field, entry) in tensors.into_iter().enumerate().take(SPLIT_POSITIONS) {
            self.push(0, entry, Role::Unit(index, field));
        }
    }

    /// Where unit number `index` lies, once it was placed.
    pub fn place_of(&self, index: usize) -> UnitPlace {
        self.units[index]
    }

    fn push(&mut self, file: usize, entry: TensorEntry, role: Role) {
        let file = &mut self.files[file];
        let offset = file.start + file.data_start + file.data_bytes;
        file.data_bytes += entry.bytes;
        match role {
            Role::Passthrough(index) => self.passthrough[index] = offset,
            Role::Unit(index, field) => {
                let place = &mut self.units[index];
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
        file.entries.push((entry, role));
    }

    /// Where passthrough tensor number `index` lies, once that is known: in a unit's file with the unit.
    pub fn passthrough_offset(&self, index: usize) -> u64 {
        self.passthrough[index]
    }

    /// Size of all files so far.
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(FileLayout::bytes).sum()
    }

    /// The files, in the order of their addresses.
    pub fn files(&self) -> &[FileLayout] {
        &self.files
    }

    /// The map of a file whose units' sizes are not known: for its order of tensors.
    pub fn outline(plan: &Plan) -> Self {
        let is_official = plan.options.header == HeaderMode::Official;
        let begun = Self::begin(plan, (!is_official).then_some(0));
        let Some(mut map) = begun else {
            return Self::official(plan, &vec![UNKNOWN; plan.units.len()]);
        };
        for index in 0..plan.units.len() {
            map.place(plan, index, &UNKNOWN);
        }
        map
    }

    /// The tensors in file order, and whether only the weights decide their first side.
    pub fn outlined(&self) -> impl Iterator<Item = (&TensorEntry, bool)> {
        let open = |role: &Role| matches!(*role, Role::Unit(_, field) if field < SIGN_MANTISSA);
        let entries = self.files.iter().flat_map(|file| &file.entries);
        entries.map(move |(entry, role)| (entry, open(role)))
    }

    /// The tensors in file order.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorEntry> {
        let entries = self.files.iter().flat_map(|file| &file.entries);
        entries.map(|(entry, _)| entry)
    }

    /// The tensors in file order, where each lies, and what belongs to it, from that of each unit's fields (by name) and of the passthrough tensors.
    pub fn in_order<T: Copy>(
        &self,
        units: &[[T; 6]],
        passthrough: &[T],
    ) -> impl Iterator<Item = (&TensorEntry, u64, T)> {
        let tensors = self.files.iter().flat_map(FileLayout::tensors);
        tensors.map(|(entry, role, offset)| match role {
            Role::Unit(unit, field) => (entry, offset, units[unit][field]),
            Role::Passthrough(tensor) => (entry, offset, passthrough[tensor]),
        })
    }
}

fn with_roles(index: usize, tensors: [TensorEntry; 6]) -> Vec<(TensorEntry, Role)> {
    tensors
        .into_iter()
        .enumerate()
        .map(|(field, entry)| (entry, Role::Unit(index, field)))
        .collect()
}

fn passthrough(
    plan: &Plan,
    is_wanted: impl Fn(usize) -> bool,
) -> impl Iterator<Item = (TensorEntry, Role)> {
    let tensors = plan.passthrough.iter().enumerate();
    let wanted = tensors.filter(move |(index, _)| is_wanted(*index));
    wanted.map(|(index, tensor)| {
        let entry = TensorEntry {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            bytes: tensor.bytes,
        };
        (entry, Role::Passthrough(index))
    })
}
