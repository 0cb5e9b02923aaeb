//! From a header to a plan.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use df11_codec::limits::MAX_UNIT_WEIGHTS;
use safetensors::Dtype;

use super::{
    FolderPlan, Member, Passthrough, Plan, UnitPlan, folder, look, recognise, target, tied,
};
use crate::{
    architectures::{Architecture, Library, Names, weight_names},
    budget::Budget,
    convert::Conversion,
    error::{Code, Error, Result},
    header::{METADATA, TensorInfo},
    options::{Cast, Form, Options},
    output::{UNKNOWN, manifest::MAX_KEPT_DROPPED, unit_tensors},
    source::Source,
};

/// Plans the compression of `source` into `target` (none: `<stem>-DF11.safetensors` beside it).
///
/// # Errors
/// Every reason in the header against it, the first with the others attached.
pub fn plan(source: &Path, target: Option<&Path>, options: Options) -> Result<Plan> {
    if options.max_rate == Some(0) {
        let error = Error::new(Code::Option, "a rate of 0 would never end");
        return Err(error.hint("Allow some bytes a second, or set no limit."));
    }
    let source = Source::open_within(source, Budget::longest_header(&options))?;
    let path = source.path().to_path_buf();
    let plan = build(source, target, options);
    plan.map_err(|error| error.all_at_path(&path))
}

fn build(source: Source, target: Option<&Path>, options: Options) -> Result<Plan> {
    let config = source.config().map(|config| &*config.members);
    let header = source.header();
    let library = Library::load(&options.definitions)?;
    let asked = library.asked(config, &options.architecture);
    let prefix = asked.prefix(header);
    if let Some(refusal) = recognise::refusal(&source, prefix) {
        return Err(refusal);
    }
    let shown = Names::new(header, prefix).with_config(config);
    let architecture = library.find(&shown, asked, &options.architecture)?;
    let mut faults = Vec::new();
    let mut notes = Vec::new();
    let (mut named, dropped) = name_tensors(&header.tensors, prefix, &architecture, &mut faults)?;
    let known = (&*architecture, config);
    let tied = tied::find(known, &header.tensors, &mut named, &mut faults);
    let mut draft = Draft {
        tensors: &header.tensors,
        architecture: &architecture,
        options: &options,
        rest: named,
        faults,
        notes,
        left: None,
        foreign: Vec::new(),
    };
    let mut units = draft.units();
    let mut passthrough = draft.passthrough();
    if units.is_empty() && draft.faults.is_empty() {
        let fault = draft.left.take().unwrap_or_else(|| {
            let message = format!(
                "no tensor belongs to a compression unit of {}",
                architecture.id
            );
            Error::new(Code::NoUnits, message).hint("The architecture file does not fit the model.")
        });
        draft.faults.push(fault);
    }
    (faults, notes) = (draft.faults, draft.notes);
    faults.extend(name_taken(&units, &passthrough));
    let foreign = draft.foreign;
    if let Some(error) = faults.iter_mut().find(|error| error.code == Code::Dtype) {
        let seen = look::look(&source, &foreign).map(|seen| format!(" {seen}"));
        error.hint.extend(seen);
    }
    if let Some(error) = Error::collect(faults) {
        return Err(error);
    }
    if !dropped.is_empty() {
        let bytes: u64 = dropped
            .iter()
            .map(|&tensor| header.tensors[tensor].bytes())
            .sum();
        let advice = if bytes > MAX_KEPT_DROPPED {
            "; the source cannot be restored without them, so keep it if you need them"
        } else {
            ""
        };
        notes.push(format!(
            "{} tensors of the source are not part of the model that its loader takes and were left out{advice}",
            dropped.len()
        ));
    }
    let start = |tensor: usize| header.tensors[tensor].start;
    units.sort_by_key(|unit| unit.members.iter().map(|member| start(member.tensor)).min());
    for (number, unit) in units.iter_mut().enumerate() {
        unit.number = number;
    }
    passthrough.sort_by_key(|tensor| start(tensor.tensor));
    let form = folder::form(&options, target, &architecture)?;
    let folder = (form != Form::File)
        .then(|| FolderPlan::new(&source, &architecture, options.config_version))
        .transpose()?;
    let target = target::choose(source.path(), target, (form, options.if_exists))?;
    target::check_apart(source.files(), &target)?;
    let plan = Plan {
        source: Arc::new(source),
        target,
        form,
        folder: folder.map(Arc::new),
        architecture,
        prefix,
        units,
        passthrough,
        dropped,
        tied,
        options,
        notes,
    };
    Error::collect(plan.name_faults()).map_or(Ok(plan), Err)
}

/// Target names with their source tensors, and the tensors that have none.
fn name_tensors(
    tensors: &[TensorInfo],
    prefix: &str,
    architecture: &Architecture,
    faults: &mut Vec<Error>,
) -> Result<(BTreeMap<String, usize>, Vec<usize>)> {
    let mut named = BTreeMap::new();
    let mut dropped = Vec::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let stripped = tensor.name.strip_prefix(prefix);
        let target = stripped.map_or(Ok(None), |name| architecture.target_name(name));
        match target.map_err(|error| error.in_tensor(&tensor.name))? {
            None => dropped.push(index),
            Some(name) => {
                if let Some(other) = named.insert(name.clone(), index) {
                    let message =
                        format!("it and {} would both be called {name}", tensors[other].name);
                    let error = Error::new(Code::NameCollision, message).in_tensor(&tensor.name);
                    let error = error.hint("Remove one of the two from the checkpoint.");
                    error.add_to(faults);
                }
            }
        }
    }
    Ok((named, dropped))
}

struct Draft<'a> {
    tensors: &'a [TensorInfo],
    architecture: &'a Arc<Architecture>,
    options: &'a Options,
    /// Tensors not given to a unit yet, by target name.
    rest: BTreeMap<String, usize>,
    faults: Vec<Error>,
    notes: Vec<String>,
    /// Why the first unit was left as it is that was, for a file in which no other remains.
    left: Option<Error>,
    /// Tensors of units that are not BF16.
    foreign: Vec<usize>,
}

impl Draft<'_> {
    fn units(&mut self) -> Vec<UnitPlan> {
        let modules = module_paths(self.rest.keys());
        let architecture = self.architecture.clone();
        let mut found: HashMap<String, &[String]> = HashMap::new();
        for pattern in &architecture.units {
            for module in modules
                .iter()
                .filter(|module| pattern.pattern.is_match(module))
            {
                found.entry(module.clone()).or_insert(&pattern.attributes);
            }
        }
        let mut names: Vec<_> = found.into_iter().collect();
        names.sort();
        names
            .into_iter()
            .filter_map(|(name, attributes)| self.unit(name, attributes))
            .collect()
    }

    fn unit(&mut self, name: String, attributes: &[String]) -> Option<UnitPlan> {
        let wanted = weight_names(&name, attributes);
        let missing: Vec<_> = wanted
            .iter()
            .filter(|member| !self.rest.contains_key(*member))
            .cloned()
            .collect();
        if !missing.is_empty() {
            let message = format!("the source lacks {}", missing.join(", "));
            let hint = "The checkpoint is incomplete, or a variant that the architecture file does not cover.";
            Error::new(Code::UnitIncomplete, message)
                .in_unit(&name)
                .hint(hint)
                .add_to(&mut self.faults);
            return None;
        }
        let foreign: Vec<_> = wanted
            .iter()
            .map(|member| self.rest[member])
            .filter(|&tensor| self.tensors[tensor].dtype != Dtype::BF16)
            .collect();
        if !foreign.is_empty() && self.options.cast == Cast::None {
            let what = format!(
                "{} of {} tensors are not BF16 (the first is {})",
                foreign.len(),
                wanted.len(),
                self.tensors[foreign[0]].dtype
            );
            self.foreign.extend(&foreign);
            let error = Error::new(Code::Dtype, what.clone())
                .in_unit(&name)
                .in_tensor(&self.tensors[foreign[0]].name);
            let rounds =
                "Use the BF16 checkpoint, or set 'cast' to to-bf16, which rounds the weights";
            if self.architecture.needs(&name) {
                error.hint(format!("{rounds}.")).add_to(&mut self.faults);
            } else if self.architecture.dtype.plain_unless_bf16 || self.options.keep_uncompressed {
                self.notes
                    .push(format!("unit {name} was left uncompressed: {what}"));
                self.left.get_or_insert(error.hint(format!("{rounds}.")));
            } else {
                let hint =
                    format!("{rounds}, or leave such units as they are ('keep uncompressed').");
                error.hint(hint).add_to(&mut self.faults);
            }
            return None;
        }
        let members: Vec<_> = wanted
            .into_iter()
            .filter_map(|member| self.member(member, &name))
            .collect();
        let weights = members.iter().map(|member| member.weights).sum();
        if weights == 0 || weights > MAX_UNIT_WEIGHTS {
            let message =
                format!("it has {weights} weights; DF11 units have 1 to {MAX_UNIT_WEIGHTS}");
            let error = Error::new(Code::UnitSize, message).in_unit(&name);
            error
                .hint("The architecture file does not fit the model.")
                .add_to(&mut self.faults);
        }
        self.note_size(&name, weights);
        Some(UnitPlan {
            name,
            number: 0,
            members,
            weights,
        })
    }

    /// Notes a unit of which the loader takes other sizes only.
    fn note_size(&mut self, unit: &str, weights: u64) {
        let loader = self.architecture.loader.as_ref();
        let sizes = loader.and_then(|loader| loader.sizes.iter().find(|(name, _)| name == unit));
        let Some((_, accepted)) = sizes.filter(|(_, accepted)| !accepted.contains(&weights)) else {
            return;
        };
        let accepted: Vec<_> = accepted.iter().map(u64::to_string).collect();
        self.notes.push(format!(
            "unit {unit} has {weights} weights, and the loader takes only {}: it will not load this model",
            accepted.join(" or ")
        ));
    }

    fn member(&mut self, name: String, unit: &str) -> Option<Member> {
        let tensor = self.rest.remove(&name)?;
        let info = &self.tensors[tensor];
        let conversion = Conversion::between(info.dtype, Dtype::BF16);
        if info.dtype != Dtype::BF16 && conversion.is_none() {
            let error = Error::new(Code::Dtype, format!("{} cannot become BF16", info.dtype));
            let error = error.in_unit(unit).in_tensor(&info.name);
            error
                .hint("Use the BF16 checkpoint.")
                .add_to(&mut self.faults);
        }
        Some(Member {
            tensor,
            name,
            weights: info.elements(),
            conversion,
        })
    }

    fn passthrough(&mut self) -> Vec<Passthrough> {
        let rest = std::mem::take(&mut self.rest);
        rest.into_iter()
            .map(|(name, tensor)| {
                let (info, header) = (&self.tensors[tensor], self.options.header);
                Passthrough::new(name, (tensor, info), self.architecture, header)
            })
            .collect()
    }
}

/// The refusal where two tensors of the result would have one name, or one that a header has no room for.
fn name_taken(units: &[UnitPlan], passthrough: &[Passthrough]) -> Option<Error> {
    let fields = units.iter().flat_map(|unit| unit_tensors(unit, &UNKNOWN));
    let names = fields
        .map(|entry| entry.name)
        .chain(passthrough.iter().map(|tensor| tensor.name.clone()));
    let mut taken = HashSet::from([METADATA.to_owned()]);
    let twice = names.into_iter().find(|name| !taken.insert(name.clone()))?;
    let message = format!("two tensors of the result would be called {twice}");
    Some(
        Error::new(Code::NameCollision, message)
            .hint("Remove or rename the one that does not belong to the model."),
    )
}

/// Every module path that the names imply: `a.b.weight` implies `a` and `a.b`.
fn module_paths<'a>(names: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for name in names {
        for (dot, _) in name.match_indices('.') {
            paths.insert(name[..dot].to_owned());
        }
    }
    paths
}
