//! Which model a DF11 file holds that does not describe itself: its architecture, and the names and shapes of the weights that were compressed.

use std::sync::Arc;

use super::{
    Stored, structure,
    units::{StoredUnit, fault},
};
use crate::{
    architectures::{Architecture, Choice, Library, Names, ambiguous, contradiction},
    error::{Code, Error, Result},
};

/// A compressed weight.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Its name in the model.
    pub name: String,
    /// Its weights.
    pub weights: u64,
    /// Its shape.
    pub shape: Vec<u64>,
}

/// The model.
#[derive(Debug)]
pub struct Model {
    /// Its architecture.
    pub architecture: Arc<Architecture>,
    /// False where only the user's choice says that it is this one.
    pub is_shown: bool,
    /// The weights of each unit, in the order of the file's units.
    pub units: Vec<Vec<Weight>>,
}

impl Model {
    /// Finds the model of a file.
    ///
    /// # Errors
    /// `E_ARCH_UNKNOWN`, `E_ARCH_AMBIGUOUS`, `E_ARCH_CONTRADICTION`, `E_OPTION`; `E_NOT_RESTORABLE` for each weight whose shape cannot be told;
    /// `E_STRUCTURE` for split positions that cannot be right; those of the file.
    pub fn find(stored: &Stored, library: &Library, choice: &Choice) -> Result<Self> {
        let chosen = match choice {
            Choice::Auto => None,
            Choice::Id(id) => Some(library.chosen(id)?),
        };
        if let Some(misfit) = chosen.as_ref().and_then(|chosen| misfit(chosen, stored)) {
            return Err(misfit);
        }
        let fitting = library
            .iter()
            .filter(|known| misfit(known, stored).is_none());
        let drafts: Vec<_> = fitting
            .map(|known| Draft::new(known, stored))
            .collect::<Result<_>>()?;
        let shown: Vec<_> = drafts.iter().filter(|draft| draft.is_shown()).collect();
        let draft = match (&chosen, &shown[..]) {
            (None, [one]) => Some(*one),
            (None, []) => None,
            (None, [..]) => {
                let found: Vec<_> = shown.iter().map(|draft| draft.architecture).collect();
                return Err(ambiguous(&found).hint("Name the right one yourself."));
            }
            (Some(chosen), _) => {
                let agrees = |draft: &&Draft<'_>| chosen.is_choice_for(draft.architecture);
                if let Some(other) = shown.first().filter(|_| !shown.iter().any(agrees)) {
                    return Err(contradiction(&chosen.id, other.architecture));
                }
                drafts.iter().find(|d| Arc::ptr_eq(d.architecture, chosen))
            }
        };
        let draft = draft.ok_or_else(|| {
            let error = library.unknown(|known| likeness(known, stored));
            error.hint("Name its architecture yourself, or add an architecture file.")
        })?;
        let mut shown = shown.iter();
        let is_shown = shown.any(|shown| draft.architecture.is_choice_for(shown.architecture));
        draft.model(is_shown)
    }
}

/// A shape, or why it cannot be told.
type Told = std::result::Result<[u64; 2], String>;

/// An architecture whose units are those of the file, by names and numbers of tensors.
struct Draft<'a> {
    architecture: &'a Arc<Architecture>,
    stored: &'a Stored,
    /// The weights of each unit: name, weights, and shape or why that cannot be told.
    units: Vec<Vec<(String, u64, Told)>>,
}

impl<'a> Draft<'a> {
    fn new(architecture: &'a Arc<Architecture>, stored: &'a Stored) -> Result<Self> {
        let plain: Names<'_> = plain(stored).collect();
        let units = stored.units.iter().map(|unit| {
            let read = |buffer: &mut [u8], offset| stored.file.read(buffer, offset);
            let wrong = |message: &str| fault(message).in_unit(&unit.name);
            let sizes = structure::members(unit, &unit.bytes(&read, &wrong))?;
            let names = architecture.unit_weights(&unit.name).unwrap_or_default();
            let weight = |(name, weights): (String, u64)| {
                let module = name.strip_suffix(".weight").unwrap_or_default();
                let shapes = &architecture.shapes;
                let shape = shapes.find(&unit.name, module, weights, &plain);
                (name, weights, shape)
            };
            Ok(names.into_iter().zip(sizes).map(weight).collect())
        });
        let units = units.collect::<Result<_>>()?;
        Ok(Self {
            architecture,
            stored,
            units,
        })
    }

    /// Whether names and shapes are those by which the architecture is recognised.
    fn is_shown(&self) -> bool {
        let Some(detect) = &self.architecture.detect else {
            return false;
        };
        let weights = self.units.iter().flatten();
        let weights = weights.map(|(name, _, shape)| {
            let shape = shape.as_ref().map_or(&[][..], |shape| &shape[..]);
            (name.as_str(), shape)
        });
        detect.matches(&plain(self.stored).chain(weights).collect())
    }

    fn model(&self, is_shown: bool) -> Result<Model> {
        let mut faults = Vec::new();
        let mut units = Vec::with_capacity(self.units.len());
        for (unit, weights) in self.stored.units.iter().zip(&self.units) {
            let mut known = Vec::with_capacity(weights.len());
            for (name, weights, shape) in weights {
                match shape {
                    Ok(shape) => known.push(Weight {
                        name: name.clone(),
                        weights: *weights,
                        shape: shape.to_vec(),
                    }),
                    Err(message) => faults.push(
                        Error::new(Code::NotRestorable, message.clone())
                            .in_unit(&unit.name)
                            .in_tensor(name),
                    ),
                }
            }
            units.push(known);
        }
        if let Some(error) = Error::collect(faults) {
            let message = format!(
                "Nothing was written: shapes are not guessed. Take the original checkpoint, or correct [shapes] of {} ({}).",
                self.architecture.id, self.architecture.origin
            );
            return Err(error.hint(message));
        }
        Ok(Model {
            architecture: self.architecture.clone(),
            is_shown,
            units,
        })
    }
}

/// The tensors that are not compressed.
fn plain(stored: &Stored) -> impl Iterator<Item = (&str, &[u64])> {
    let tensors = &stored.file.header().tensors;
    let others = stored.others.iter().map(|&index| &tensors[index]);
    others.map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice()))
}

/// Why a unit is none of an architecture, where it is not.
fn unit_misfit(known: &Architecture, unit: &StoredUnit) -> Option<String> {
    let Some(weights) = known.unit_weights(&unit.name) else {
        return Some(format!("{} has no unit of this name", known.id));
    };
    let (theirs, ours) = (weights.len(), unit.members);
    (theirs as u64 != ours).then(|| {
        format!(
            "in {} this unit has {theirs} tensors, here {ours}",
            known.id
        )
    })
}

/// The refusal of an architecture for the first unit that is none of its.
fn misfit(known: &Architecture, stored: &Stored) -> Option<Error> {
    let units = stored.units.iter();
    let mut faults = units.filter_map(|unit| Some((unit, unit_misfit(known, unit)?)));
    let (unit, message) = faults.next()?;
    let error = Error::new(Code::ArchContradiction, message).in_unit(&unit.name);
    Some(error.hint("Choose auto, or the architecture of the model."))
}

/// How much of an architecture there is, 0 to 1: half of it units that fit, half of it names.
fn likeness(known: &Architecture, stored: &Stored) -> Option<f64> {
    let detect = known.detect.as_ref()?;
    let fitting = |unit: &&StoredUnit| unit_misfit(known, unit).is_none();
    let fitting: Vec<_> = stored.units.iter().filter(fitting).collect();
    let weights = fitting
        .iter()
        .filter_map(|unit| known.unit_weights(&unit.name));
    let weights: Vec<_> = weights.flatten().collect();
    let weights = weights.iter().map(|name| (name.as_str(), &[][..]));
    let names: Names<'_> = plain(stored).chain(weights).collect();
    let share = fitting.len() as f64 / stored.units.len() as f64;
    Some(f64::midpoint(share, detect.likeness(&names)))
}
