//! One architecture file. docs/DEFINITIONS.md describes the fields for those who write one.

use std::{collections::HashSet, path::Path};

use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize};

use super::layout::Layout;
use crate::error::{Code, Error, Result};

/// The only schema version there is.
const SCHEMA: u32 = 1;
/// Longest name that renames may give, in bytes. Real ones have less than 200; 30 renames that double a name would fill the memory.
const MAX_NAME_BYTES: usize = 4096;
/// What stands around a unit's pattern, so that it matches whole module paths.
const WHOLE: (&str, &str) = ("^(?:", ")$");

/// An architecture as its file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    schema: u32,
    /// The type name that the loader looks up.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// How models of it are stored.
    #[serde(default)]
    pub layout: Layout,
    /// The architecture that detection gives, where this one is only a choice of the user.
    pub variant_of: Option<String>,
    /// Where the facts come from.
    pub source: String,
    /// Present where no loader can use the result.
    pub refused: Option<Refused>,
    /// The loader node that takes the result.
    pub loader: Option<Loader>,
    /// How a model of it is recognised.
    pub detect: Option<Detect>,
    /// What happens to tensor names.
    #[serde(default)]
    pub keys: Keys,
    /// Tensors that are another one: a source that has them must have them equal, and they are not stored twice.
    #[serde(default)]
    pub tied: Vec<(String, String)>,
    /// What happens to dtypes.
    #[serde(default)]
    pub dtype: DtypeRules,
    /// The compression units.
    #[serde(default)]
    pub units: Vec<UnitPattern>,
    /// How two-dimensional shapes are found again from a DF11 file alone.
    #[serde(default)]
    pub shapes: ShapeRules,
    /// The file it was read from; not part of the file.
    #[serde(skip)]
    pub origin: String,
}

/// Why an architecture is recognised but not compressed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// One sentence.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

/// What loads the result: a node of a pack, or a class of a Python package.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Loader {
    /// Node id or class.
    pub node: String,
    /// Node pack or package.
    pub pack: String,
    /// Its address.
    pub url: String,
    /// What the user must know.
    #[serde(default)]
    pub note: String,
    /// Units that the loader must find compressed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Units and the only weight counts that the loader accepts for them.
    #[serde(default)]
    pub sizes: Vec<(String, Vec<u64>)>,
}

/// A rule on one tensor's shape: name, axis, value.
pub type ShapeRule = (String, usize, u64);
/// A rule on the model's config.json: key, and the value that it has or that is in its list.
pub type ConfigRule = (String, serde_json::Value);

/// How a model is recognised by its names, its shapes and its config.json. All parts must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Detect {
    /// Names that must exist.
    pub all: Vec<String>,
    /// Groups of names; one of each group must exist.
    pub any: Vec<Vec<String>>,
    /// Names that must not exist.
    pub none: Vec<String>,
    /// Shapes that must be so.
    pub shape: Vec<ShapeRule>,
    /// Shapes that must not be so.
    pub not_shape: Vec<ShapeRule>,
    /// What config.json must say, where there is one.
    pub config: Vec<ConfigRule>,
    /// What it must not say.
    pub not_config: Vec<ConfigRule>,
}

impl Detect {
    fn complaint(&self, layout: Layout) -> Option<&'static str> {
        if layout == Layout::Comfyui && !(self.config.is_empty() && self.not_config.is_empty()) {
            return Some(
                "[detect] asks for config.json, which a model in this layout does not have",
            );
        }
        if self.any.iter().any(Vec::is_empty) {
            return Some("a group of any in [detect] is empty, so nothing could match");
        }
        let demands_nothing = self.all.is_empty() && self.any.is_empty() && self.shape.is_empty();
        demands_nothing
            .then_some("[detect] demands neither names nor shapes, so it would match every model")
    }
}

/// What happens to tensor names, after the prefix is stripped.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// Tensors that ComfyUI does not load.
    #[serde(deserialize_with = "patterns")]
    pub drop: Vec<Regex>,
    /// Replacements, each tried once per name, in order.
    #[serde(deserialize_with = "replacements")]
    pub rename: Vec<(Regex, String)>,
    /// Tensors that ComfyUI itself holds as F32.
    #[serde(deserialize_with = "patterns")]
    pub keep_f32: Vec<Regex>,
    /// Tensors that must never be dropped.
    #[serde(deserialize_with = "patterns")]
    pub keep_always: Vec<Regex>,
}

/// What happens to dtypes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DtypeRules {
    /// Units that hold other dtypes than BF16 are left uncompressed instead of refused.
    pub plain_unless_bf16: bool,
}

/// A pattern of compression units.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitPattern {
    /// Matches the whole module path.
    #[serde(deserialize_with = "full_pattern")]
    pub pattern: Regex,
    /// The attributes whose weights form the unit, in order; empty: the module's own weight.
    pub attributes: Vec<String>,
}

impl UnitPattern {
    /// The pattern as its file spells it.
    pub fn text(&self) -> &str {
        let whole = self.pattern.as_str();
        let inner = whole.strip_prefix(WHOLE.0);
        inner
            .and_then(|rest| rest.strip_suffix(WHOLE.1))
            .unwrap_or(whole)
    }

    fn has_duplicates(&self) -> bool {
        let mut seen = HashSet::new();
        !self
            .attributes
            .iter()
            .all(|attribute| seen.insert(attribute))
    }
}

/// How shapes are found again. `shapes.rs` applies it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShapeRules {
    /// A bias tells the number of output features.
    pub from_bias: bool,
    /// Further rules, the first that matches counts.
    pub rules: Vec<ShapeRecovery>,
}

/// How one side of a weight's shape is found: it equals `factor` times one side of another tensor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeRecovery {
    /// Searched in the weight's module path.
    #[serde(deserialize_with = "pattern")]
    pub pattern: Regex,
    /// Which side is found; the other one follows from the number of weights.
    pub side: Side,
    /// The other tensor,
    pub key: Option<String>,
    /// or the first of these names below the unit that exists.
    pub in_unit: Option<Vec<String>>,
    /// Its axis.
    pub axis: usize,
    /// The factor.
    pub factor: u64,
}

/// A side of a two-dimensional weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Rows, output features.
    Out,
    /// Columns, input features.
    In,
}

impl Architecture {
    /// Reads an architecture file's text; `origin` names the file in messages.
    ///
    /// # Errors
    /// `E_DEFINITION` with the place of the fault.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let fault = |message: String| {
            let message = format!("the architecture file is faulty: {message}");
            Error::new(Code::Definition, message)
                .hint("docs/DEFINITIONS.md describes the fields.")
                .at_path(Path::new(origin))
        };
        let mut architecture: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            fault(format!("line {line}: {}", error.message()))
        })?;
        origin.clone_into(&mut architecture.origin);
        let complaint = architecture.complaint();
        complaint.map_or(Ok(architecture), |complaint| {
            Err(fault(complaint.to_owned()))
        })
    }

    fn complaint(&self) -> Option<&'static str> {
        if self.schema != SCHEMA {
            return Some("its schema number is not 1; update DFloat11 Compress or the file");
        }
        if self.id.is_empty() || self.id == "auto" {
            return Some("its id is empty or reserved");
        }
        if self.variant_of.is_some() == self.detect.is_some() {
            return Some("it needs either [detect] or variant_of");
        }
        if self.refused.is_some() != self.units.is_empty()
            || self.refused.is_some() == self.loader.is_some()
        {
            return Some("it needs either [refused] or [loader] and [[units]]");
        }
        let detect = self.detect.as_ref();
        if let Some(complaint) = detect.and_then(|detect| detect.complaint(self.layout)) {
            return Some(complaint);
        }
        if self.layout == Layout::Comfyui && !self.tied.is_empty() {
            return Some("a model in this layout has no tied tensors");
        }
        if self.units.iter().any(UnitPattern::has_duplicates) {
            return Some("a unit lists an attribute twice");
        }
        let mut seen = HashSet::new();
        if !self.units.iter().all(|unit| seen.insert(unit.text())) {
            return Some("two units have the same pattern");
        }
        let one_source = |rule: &ShapeRecovery| rule.key.is_some() != rule.in_unit.is_some();
        if !self.shapes.rules.iter().all(one_source) {
            return Some("a shape rule needs either key or in_unit");
        }
        None
    }

    /// Whether the loader tells the model by this unit, so that it must not stay uncompressed.
    pub fn needs(&self, unit: &str) -> bool {
        let loader = self.loader.as_ref();
        loader.is_some_and(|loader| loader.needs.iter().any(|needed| needed == unit))
    }

    /// The weights of the unit at a module path, by name, in order; none where no pattern matches it.
    pub fn unit_weights(&self, unit: &str) -> Option<Vec<String>> {
        let mut patterns = self.units.iter();
        let found = patterns.find(|known| known.pattern.is_match(unit))?;
        Some(weight_names(unit, &found.attributes))
    }

    /// The units as `config.json` has them under `pattern_dict`: pattern text and attributes, in order.
    pub fn pattern_dict(&self) -> impl Iterator<Item = (&str, &[String])> {
        let units = self.units.iter();
        units.map(|unit| (unit.text(), unit.attributes.as_slice()))
    }

    /// Whether it is a choice for models that are detected as `detected`.
    pub fn is_choice_for(&self, detected: &Self) -> bool {
        self.id == detected.id || self.variant_of.as_ref() == Some(&detected.id)
    }

    /// The name that a source tensor (prefix stripped) gets, or none where it is dropped.
    ///
    /// # Errors
    /// `E_DEFINITION` where the renames would make it absurdly long.
    pub fn target_name(&self, name: &str) -> Result<Option<String>> {
        let matches = |list: &[Regex]| list.iter().any(|pattern| pattern.is_match(name));
        if matches(&self.keys.drop) && !matches(&self.keys.keep_always) {
            return Ok(None);
        }
        let longest = MAX_NAME_BYTES.max(name.len());
        let mut name = name.to_owned();
        for (pattern, replacement) in &self.keys.rename {
            name = pattern.replace(&name, replacement).into_owned();
            if name.len() > longest {
                let message = format!(
                    "the renames of {} give a name of more than {longest} bytes",
                    self.id
                );
                return Err(Error::new(Code::Definition, message)
                    .hint("Correct the [keys] of the architecture file.")
                    .at_path(Path::new(&self.origin)));
            }
        }
        Ok(Some(name))
    }
}

/// The weights that form a unit, by name, in the order in which they are concatenated.
pub fn weight_names(unit: &str, attributes: &[String]) -> Vec<String> {
    if attributes.is_empty() {
        return vec![format!("{unit}.weight")];
    }
    let attributes = attributes.iter();
    attributes
        .map(|attribute| format!("{unit}.{attribute}.weight"))
        .collect()
}

fn compile<E: serde::de::Error>(pattern: &str) -> std::result::Result<Regex, E> {
    // The library's own message is a drawing of several lines that ends with the reason.
    let reason = |error: regex::Error| {
        error
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    Regex::new(pattern).map_err(|error| E::custom(format!("pattern {pattern}: {}", reason(error))))
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Regex, D::Error> {
    compile(&String::deserialize(deserializer)?)
}

fn patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<Regex>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .iter()
        .map(|pattern| compile(pattern))
        .collect()
}

fn replacements<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<(Regex, String)>, D::Error> {
    let pairs = Vec::<(String, String)>::deserialize(deserializer)?;
    pairs
        .into_iter()
        .map(|(pattern, replacement)| Ok((compile(&pattern)?, replacement)))
        .collect()
}

fn full_pattern<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Regex, D::Error> {
    let text = String::deserialize(deserializer)?;
    compile(&format!("{}{text}{}", WHOLE.0, WHOLE.1))
}
