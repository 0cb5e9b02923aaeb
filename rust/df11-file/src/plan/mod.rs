//! What a compression will do, decided from the source's header alone. Every refusal that the header shows comes from here. Values are read
//! only to tell, where a dtype is refused, what rounding would change.

mod build;
mod folder;
mod look;
mod recognise;
mod report;
mod target;
mod tied;

use std::{path::PathBuf, sync::Arc};

use safetensors::Dtype;

use crate::{
    architectures::Architecture,
    convert::Conversion,
    header::TensorInfo,
    options::{Form, HeaderMode, Options},
    source::Source,
};

pub use build::plan;
pub(crate) use folder::CONFIG_KEY;
pub use folder::FolderPlan;
pub(crate) use folder::file_name;
pub use report::PlanReport;
pub(crate) use target::{
    choose as choose_target, exists as target_exists, folder_of, is_df11_folder, is_taken,
};
pub(crate) use tied::different as not_tied;

/// A compression, ready to start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The open source.
    pub source: Arc<Source>,
    /// The file or folder to write.
    pub target: PathBuf,
    /// Which of them.
    pub form: Form,
    /// What a folder holds besides tensors; none for a file.
    pub folder: Option<Arc<FolderPlan>>,
    /// The source's architecture.
    pub architecture: Arc<Architecture>,
    /// The prefix that the model's names carry in the source.
    pub prefix: &'static str,
    /// The compression units, in the order of their data in the source.
    pub units: Vec<UnitPlan>,
    /// Tensors that are not compressed, in the order of their data in the source.
    pub passthrough: Vec<Passthrough>,
    /// Source tensors (indices into its header) that the result does not hold.
    pub dropped: Vec<usize>,
    /// Source tensors that must equal another, the other, and whether the result does not hold them.
    pub tied: Vec<Tied>,
    /// The user's choices.
    pub options: Options,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One compression unit.
#[derive(Clone, Debug)]
pub struct UnitPlan {
    /// Its module path.
    pub name: String,
    /// Its number among all units of the job, by which progress counts.
    pub number: usize,
    /// Its tensors, in the order in which they are concatenated.
    pub members: Vec<Member>,
    /// Weights of all members.
    pub weights: u64,
}

/// One tensor of a unit.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index in the source's header.
    pub tensor: usize,
    /// Its name in the model, which the result does not hold any more.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Conversion to BF16, where the user asked for one.
    pub conversion: Option<Conversion>,
}

/// A tensor that the model takes from another one.
#[derive(Clone, Copy, Debug)]
pub struct Tied {
    /// Index in the source's header.
    pub tensor: usize,
    /// Index of the other.
    pub other: usize,
    /// Whether the result does not hold it.
    pub is_left_out: bool,
}

/// A tensor that is copied.
#[derive(Clone, Debug)]
pub struct Passthrough {
    /// Index in the source's header.
    pub tensor: usize,
    /// Its name in the result.
    pub name: String,
    /// Its dtype in the result.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its size in the result, in bytes.
    pub bytes: u64,
    /// Conversion to that dtype.
    pub conversion: Option<Conversion>,
}

/// DF11 bytes per 100 BF16 bytes of published models: 67.8 to 70.8, 68.5 over all.
const TYPICAL_PERCENT: u64 = 69;

impl Plan {
    /// BF16 bytes of all units.
    pub fn unit_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.weights * 2).sum()
    }

    /// Bytes of the tensors that are copied.
    pub fn passthrough_bytes(&self) -> u64 {
        self.passthrough.iter().map(|tensor| tensor.bytes).sum()
    }

    /// Memory that a job takes for the lists of tensors and units and for the headers, in bytes, at most: measured with the shortest names.
    pub(crate) fn memory(&self) -> u64 {
        let tensors = self.source.header().tensors.len() as u64;
        self.source.header_json().len() as u64 * 4
            + tensors * 2048
            + self.units.len() as u64 * 10240
    }

    /// The size to expect of the result. Exact sizes need the weights themselves.
    pub fn predicted_bytes(&self) -> u64 {
        let folder = self.folder.iter();
        let copies: u64 = folder
            .flat_map(|folder| &folder.copies)
            .map(|(_, bytes)| bytes)
            .sum();
        copies + self.passthrough_bytes() + self.unit_bytes() / 100 * TYPICAL_PERCENT
    }
}

impl Plan {
    /// Whether some weights of units are not BF16.
    pub(crate) fn rounds(&self) -> bool {
        let mut members = self.units.iter().flat_map(|unit| &unit.members);
        members.any(|member| member.conversion.is_some())
    }

    /// The tensors of a unit, were it left as it is.
    pub(crate) fn left(&self, unit: &UnitPlan) -> impl Iterator<Item = Passthrough> {
        unit.members.iter().map(|member| {
            let info = &self.source.header().tensors[member.tensor];
            let (name, header) = (member.name.clone(), self.options.header);
            Passthrough::new(name, (member.tensor, info), &self.architecture, header)
        })
    }

    /// Bytes of a unit, were it left as it is.
    pub(crate) fn left_bytes(&self, unit: &UnitPlan) -> u64 {
        self.left(unit).map(|tensor| tensor.bytes).sum()
    }

    /// This plan with those units left as they are that `is_left` names.
    pub(crate) fn leaving(&self, is_left: impl Fn(&UnitPlan) -> bool) -> Self {
        let mut plan = self.clone();
        let (left, units) = self.units.iter().cloned().partition(is_left);
        let left: Vec<UnitPlan> = left;
        plan.units = units;
        plan.passthrough
            .extend(left.iter().flat_map(|unit| self.left(unit)));
        let start = |tensor: &Passthrough| self.source.header().tensors[tensor.tensor].start;
        plan.passthrough.sort_by_key(start);
        plan
    }

    /// This plan with those units left as they are of which a finished file has no unit, but every tensor.
    pub(crate) fn as_found(
        &self,
        has_unit: impl Fn(&str) -> bool,
        has_tensor: impl Fn(&str) -> bool,
    ) -> Self {
        self.leaving(|unit| {
            let mut members = unit.members.iter();
            !has_unit(&unit.name) && members.all(|member| has_tensor(&member.name))
        })
    }

    /// This plan with copied tensors of the dtypes that a finished file has them in, where these hold every value of the source.
    pub(crate) fn in_dtypes(mut self, found: impl Fn(&str) -> Option<Dtype>) -> Self {
        for tensor in &mut self.passthrough {
            let info = &self.source.header().tensors[tensor.tensor];
            let dtype = found(&tensor.name).unwrap_or(tensor.dtype);
            let conversion = Conversion::between(info.dtype, dtype);
            let holds_all = conversion.map_or(dtype == info.dtype, |widened| !widened.rounds());
            if holds_all {
                let widened = conversion.map(|widened| widened.converted_bytes(info.bytes()));
                tensor.bytes = widened.unwrap_or_else(|| info.bytes());
                (tensor.dtype, tensor.conversion) = (dtype, conversion);
            }
        }
        self
    }
}

impl Passthrough {
    /// A tensor of the source, by index and entry, as it is copied under a name.
    fn new(
        name: String,
        (tensor, info): (usize, &TensorInfo),
        architecture: &Architecture,
        header: HeaderMode,
    ) -> Self {
        let is_kept = || {
            let mut kept = architecture.keys.keep_f32.iter();
            kept.any(|kept| kept.is_match(&name))
        };
        let official = match header {
            HeaderMode::SelfDescribing => info.dtype,
            HeaderMode::Official if is_kept() => Dtype::F32,
            HeaderMode::Official => Dtype::BF16,
        };
        let conversion = Conversion::between(info.dtype, official);
        let converted = |conversion: Conversion| {
            let bytes = info.elements() * conversion.widths().1 as u64;
            (official, bytes)
        };
        let (dtype, bytes) = conversion.map_or((info.dtype, info.bytes()), converted);
        Self {
            tensor,
            name,
            dtype,
            shape: info.shape.clone(),
            bytes,
            conversion,
        }
    }
}
