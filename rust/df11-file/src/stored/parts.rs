//! Where each tensor of the source comes from. The description is text from a file: here it must prove to cover the source exactly.

use std::{collections::HashMap, ops::Range};

use safetensors::Dtype;

use super::{Stored, description::Description, hashes, units::fault};
use crate::{
    convert::Conversion,
    error::{Code, Error, Result},
    header::{Header, TensorInfo},
};

/// A tensor of the source that is a part of a unit.
#[derive(Debug)]
pub struct Member {
    /// Index in the source's header.
    pub tensor: usize,
    /// Its first weight in the unit.
    pub first: u64,
    /// Its weights.
    pub weights: u64,
}

/// All parts of the source. Each of its tensors is exactly one of them.
#[derive(Debug)]
pub struct Parts {
    /// Units in the order of their data: index in the file, and members.
    pub units: Vec<(usize, Vec<Member>)>,
    /// Copied tensors in the order of their data: index in the file's header, and in the source's.
    pub copied: Vec<(usize, usize)>,
    /// Kept tensors: index in the source's header, and where their bytes lie among those that were kept.
    pub kept: Vec<(usize, Range<usize>)>,
    /// Dropped tensors whose bytes were not kept: indices in the source's header.
    pub missing: Vec<usize>,
}

impl Parts {
    /// Finds every tensor of the source.
    ///
    /// # Errors
    /// `E_STRUCTURE` where the description does not fit the file or does not cover the source.
    pub fn new(stored: &Stored, description: &Description) -> Result<Self> {
        let mut claims = Claims::new(&description.header);
        let (mut copied, twins) = copied(stored, description, &mut claims)?;
        let units = units(stored, description, &mut claims)?;
        let missing_tied = tied(description, &mut claims, &mut copied)?;
        let (kept, mut missing) = kept(description, &mut claims)?;
        missing.extend(missing_tied);
        if let Some(forgotten) = claims.unclaimed() {
            let error = fault("its metadata does not say where this tensor of its source is");
            return Err(error.in_tensor(&forgotten.name));
        }
        let tensor = |index: usize| &description.header.tensors[index];
        let read = units.iter().flat_map(|(_, members)| members);
        let read = read.map(|member| member.tensor);
        let read = read.chain(copied.iter().map(|(_, tensor)| *tensor));
        if let Some(unproven) = read
            .into_iter()
            .find(|&index| description.source[index].is_none())
        {
            let error = fault("its metadata has no hash of this tensor of its source");
            return Err(error.in_tensor(&tensor(unproven).name));
        }
        let hashes = hashes::by_tensor(stored, description)?;
        if let Some((_, changed)) = copied
            .iter()
            .chain(&twins)
            .find(|(index, tensor)| hashes[*index] != description.source[*tensor])
        {
            let error =
                fault("its metadata has one hash of this tensor, and another of it in its source");
            return Err(error.in_tensor(&tensor(*changed).name));
        }
        Ok(Self {
            units,
            copied,
            kept,
            missing,
        })
    }

    /// Makes sure that the file holds all of its source.
    ///
    /// # Errors
    /// `E_NOT_RESTORABLE` with what is missing.
    pub fn require_all(&self, description: &Description) -> Result<()> {
        let tensor = |index: usize| &description.header.tensors[index];
        let missing: Vec<_> = self.missing.iter().map(|&index| tensor(index)).collect();
        refuse(
            &missing,
            "are no part of the model and were too large to be kept",
        )?;
        let members = self.units.iter().flat_map(|(_, members)| members);
        let rounded: Vec<_> = members
            .map(|member| tensor(member.tensor))
            .filter(|tensor| {
                let comes_back = description.is_exact
                    && Conversion::between(Dtype::BF16, tensor.dtype).is_some();
                tensor.dtype != Dtype::BF16 && !comes_back
            })
            .collect();
        refuse(&rounded, "were rounded to BF16 when the file was made")
    }
}

/// Refuses where some of the source is not in the file.
fn refuse(lost: &[&TensorInfo], why: &str) -> Result<()> {
    let Some(first) = lost.first() else {
        return Ok(());
    };
    let bytes: u64 = lost.iter().map(|tensor| tensor.bytes()).sum();
    let message = format!(
        "the file does not hold all of its source: {} tensors with {bytes} bytes {why}; this is the first",
        lost.len(),
    );
    Err(Error::new(Code::NotRestorable, message)
        .in_tensor(&first.name)
        .hint("Keep the original checkpoint, or set 'usable' to restore one without them."))
}

/// Which tensors of the source have a place.
struct Claims<'a> {
    header: &'a Header,
    by_name: HashMap<&'a str, usize>,
    taken: Vec<bool>,
}

impl<'a> Claims<'a> {
    fn new(header: &'a Header) -> Self {
        let tensors = header.tensors.iter().enumerate();
        Self {
            header,
            by_name: tensors
                .map(|(index, tensor)| (tensor.name.as_str(), index))
                .collect(),
            taken: vec![false; header.tensors.len()],
        }
    }

    /// The source's tensor of this name.
    fn find(&self, name: &str) -> Result<(usize, &'a TensorInfo)> {
        let found = self.by_name.get(name).copied().ok_or_else(|| {
            fault("its metadata names a tensor that its source did not have").in_tensor(name)
        });
        found.map(|index| (index, &self.header.tensors[index]))
    }

    /// The same, which has no place yet.
    fn take(&mut self, name: &str) -> Result<(usize, &'a TensorInfo)> {
        let (index, info) = self.find(name)?;
        if std::mem::replace(&mut self.taken[index], true) {
            let error = fault("its metadata names this tensor of its source twice");
            return Err(error.in_tensor(name));
        }
        Ok((index, info))
    }

    fn is_taken(&self, name: &str) -> bool {
        self.by_name
            .get(name)
            .is_some_and(|&index| self.taken[index])
    }

    fn unclaimed(&self) -> Option<&'a TensorInfo> {
        let index = self.taken.iter().position(|taken| !taken)?;
        Some(&self.header.tensors[index])
    }
}

fn units(
    stored: &Stored,
    description: &Description,
    claims: &mut Claims<'_>,
) -> Result<Vec<(usize, Vec<Member>)>> {
    let by_name = stored.units.iter().enumerate();
    let mut by_name: HashMap<_, _> = by_name
        .map(|(index, unit)| (unit.name.as_str(), index))
        .collect();
    let mut units = Vec::with_capacity(stored.units.len());
    for (name, names) in &description.names.units {
        let index = by_name.remove(name.as_str()).ok_or_else(|| {
            fault("its metadata names a unit that is not there, or twice").in_unit(name)
        })?;
        let (mut members, mut first) = (Vec::new(), 0_u64);
        // A module that is tied to another is a unit of its own, of the other's tensor: it says nothing new.
        if matches!(&names[..], [(_, source)] if claims.is_taken(source)) {
            continue;
        }
        for (_, source) in names {
            let (tensor, info) = claims.take(source)?;
            let weights = info.elements();
            members.push(Member {
                tensor,
                first,
                weights,
            });
            first = first.saturating_add(weights);
        }
        units.push((index, members));
    }
    if let Some(name) = by_name.keys().min() {
        return Err(fault("its metadata does not say what this unit is").in_unit(name));
    }
    units.sort_by_key(|(index, _)| stored.units[*index].place.encoded_exponent);
    Ok(units)
}

/// The copied tensors, each by its index in the file's header and in the source's; then those of them that are copied a second time, for a module that is tied
/// to another and was left as it is.
#[allow(clippy::type_complexity)] // Two lists of the same kind.
fn copied(
    stored: &Stored,
    description: &Description,
    claims: &mut Claims<'_>,
) -> Result<(Vec<(usize, usize)>, Vec<(usize, usize)>)> {
    let tensors = &stored.file.header().tensors;
    let others = stored.others.iter();
    let mut by_name: HashMap<_, _> = others
        .map(|&index| (tensors[index].name.as_str(), index))
        .collect();
    let (mut copied, mut twins) = (Vec::with_capacity(stored.others.len()), Vec::new());
    for (name, source) in &description.names.passthrough {
        let index = by_name.remove(name.as_str()).ok_or_else(|| {
            fault("its metadata names a tensor that is not there, or twice").in_tensor(name)
        })?;
        let is_twin = claims.is_taken(source);
        let (tensor, info) = if is_twin {
            claims.find(source)?
        } else {
            claims.take(source)?
        };
        let found = &tensors[index];
        if (found.dtype, &found.shape) != (info.dtype, &info.shape) {
            let error = fault("it has another dtype or shape than in its source");
            return Err(error.in_tensor(name));
        }
        let list = if is_twin { &mut twins } else { &mut copied };
        list.push((index, tensor));
    }
    if let Some(name) = by_name.keys().min() {
        return Err(fault("its metadata does not say what this tensor is").in_tensor(name));
    }
    copied.sort_by_key(|(index, _)| (tensors[*index].start, tensors[*index].end));
    Ok((copied, twins))
}

/// Adds tensors that equal a copied one; those whose other is not copied are given back.
fn tied(
    description: &Description,
    claims: &mut Claims<'_>,
    copied: &mut Vec<(usize, usize)>,
) -> Result<Vec<usize>> {
    let mut missing = Vec::new();
    for (name, other) in &description.names.tied {
        let (tensor, info) = claims.take(name)?;
        let same = |(_, other_tensor): &&(usize, usize)| {
            let found = &description.header.tensors[*other_tensor];
            found.name == *other && (found.dtype, &found.shape) == (info.dtype, &info.shape)
        };
        match copied.iter().position(|entry| same(&entry)) {
            // Beside the other, so that the order by data remains.
            Some(place) => copied.insert(place + 1, (copied[place].0, tensor)),
            None => missing.push(tensor),
        }
    }
    Ok(missing)
}

/// The tensors whose bytes were kept, and those that are missing.
#[allow(clippy::type_complexity)] // Two lists of which only one has entries.
fn kept(
    description: &Description,
    claims: &mut Claims<'_>,
) -> Result<(Vec<(usize, Range<usize>)>, Vec<usize>)> {
    let (mut dropped, mut total) = (Vec::new(), 0_u64);
    for name in &description.names.dropped {
        let (tensor, info) = claims.take(name)?;
        dropped.push((tensor, info.bytes()));
        total = total.saturating_add(info.bytes());
    }
    let have = match &description.dropped {
        Some(bytes) => bytes.len() as u64,
        None if total > 0 => {
            let missing = dropped.iter().filter(|(_, bytes)| *bytes > 0);
            return Ok((Vec::new(), missing.map(|(tensor, _)| *tensor).collect()));
        }
        None => 0,
    };
    if have != total {
        return Err(fault("its metadata df11.dropped has another size"));
    }
    let mut at = 0;
    let place = |(tensor, bytes): (usize, u64)| {
        let start = at;
        at += bytes as usize;
        (tensor, start..at)
    };
    Ok((dropped.into_iter().map(place).collect(), Vec::new()))
}
