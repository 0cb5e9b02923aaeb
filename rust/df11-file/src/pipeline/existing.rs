//! Whether the target already is the result of a plan.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use super::{
    reader::read_weights,
    span::SpanMemory,
    unit_check::{UnitCheck, wrong_bytes},
};
use crate::{
    error::{Code, Error, Result},
    header::TensorInfo,
    options::HeaderMode,
    output::{
        manifest::{Stamp, texts},
        split_positions,
    },
    plan::{Passthrough, Plan},
    progress::Progress,
    report::df11_bytes,
    source::{CONFIG_NAME, Source},
    stored::{Stored, unit_bytes::RunMemory, units::StoredUnit},
};

/// Kernel chunks of a unit that are compared, besides its first and last.
const SAMPLES: u64 = 4;
/// Bytes of a passthrough tensor that are compared at a time.
pub const COMPARE_BYTES: u64 = 1 << 20;

/// True where the target is a complete file with the plan's tensors and their sizes fit together: a self-describing one if its stamp and the
/// texts of its source are the plan's, an official one if its passthrough tensors and a sample of its kernel chunks, decoded, equal the source.
///
/// # Errors
/// Those of the source, or `E_CANCELLED`.
pub fn is_result(plan: &Plan, progress: &Progress) -> Result<bool> {
    let Ok(mut target) = Stored::open(&plan.target) else {
        return Ok(false);
    };
    let described = target.description.take();
    let found = found_in(plan, &target);
    let plan = found.as_ref().unwrap_or(plan);
    let Some((target, units)) = matching_units(plan, target) else {
        return Ok(false);
    };
    if !has_others(plan, &target)? {
        return Ok(false);
    }
    if plan.options.header == HeaderMode::SelfDescribing {
        return Ok(described.is_some_and(|found| {
            found.stamp.serves(&Stamp::of(plan)) && found.texts == texts(&plan.source)
        }));
    }
    if target.header().metadata != plan.plain_metadata() {
        return Ok(false);
    }
    for tensor in &plan.passthrough {
        progress.check_cancelled()?;
        let found = find(&target, &tensor.name);
        if !found.map_or(Ok(false), |found| {
            same_passthrough(plan, tensor, &target, found)
        })? {
            return Ok(false);
        }
    }
    for (index, unit) in units.iter().enumerate() {
        progress.check_cancelled()?;
        match sample(plan, progress, index, unit, &target) {
            Ok(()) => {}
            Err(error) if error.code == Code::Verify => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Whether a folder has the plan's files: those of tensors by name, the others to the byte.
fn has_others(plan: &Plan, target: &Source) -> Result<bool> {
    let Some(folder) = &plan.folder else {
        return Ok(true);
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    let found: HashSet<_> = target.files().map(name).collect();
    let wanted: HashSet<_> = plan.file_names().into_iter().map(OsString::from).collect();
    let has = |name: &OsStr, bytes: &[u8]| {
        let found = fs::read(plan.target.join(name));
        found.is_ok_and(|found| found == bytes)
    };
    if found != wanted || !has(OsStr::new(CONFIG_NAME), folder.config.as_bytes()) {
        return Ok(false);
    }
    for (path, _) in &folder.copies {
        let bytes = fs::read(path).map_err(|error| Error::read(path, &error))?;
        if !has(&name(path), &bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The plan as `target` has it, where units may be left as they are.
fn found_in(plan: &Plan, target: &Stored) -> Option<Plan> {
    plan.options.keep_uncompressed.then(|| {
        let others = target.other_names();
        let units: HashSet<_> = target.units.iter().map(|unit| unit.name.as_str()).collect();
        plan.as_found(
            |unit| units.contains(unit),
            |tensor| others.contains(tensor),
        )
    })
}

/// The units in `target` in the plan's order, where it holds exactly the plan's tensors and each unit's sizes fit together.
fn matching_units(plan: &Plan, target: Stored) -> Option<(Source, Vec<StoredUnit>)> {
    let tensors = &target.file.header().tensors;
    let others: HashMap<&str, &TensorInfo> = target
        .others
        .iter()
        .map(|&index| (tensors[index].name.as_str(), &tensors[index]))
        .collect();
    let has = |tensor: &Passthrough| {
        others
            .get(tensor.name.as_str())
            .is_some_and(|found| (tensor.dtype, &tensor.shape) == (found.dtype, &found.shape))
    };
    if target.units.len() != plan.units.len()
        || others.len() != plan.passthrough.len()
        || !plan.passthrough.iter().all(has)
    {
        return None;
    }
    let mut found: HashMap<String, StoredUnit> = target
        .units
        .into_iter()
        .map(|unit| (unit.name.clone(), unit))
        .collect();
    let units = plan.units.iter().map(|unit| {
        let stored = found.remove(&unit.name)?;
        let fits =
            (stored.layout.weights, stored.members) == (unit.weights, unit.members.len() as u64);
        // It may have been made when units that grow were not to be left as they are.
        let should_be_left = plan.options.keep_uncompressed
            && !plan.architecture.needs(&unit.name)
            && df11_bytes(unit, &stored.layout) > plan.left_bytes(unit);
        (fits && !should_be_left).then_some(stored)
    });
    let units = units.collect::<Option<_>>()?;
    Some((target.file, units))
}

fn find<'a>(file: &'a Source, name: &str) -> Option<&'a TensorInfo> {
    file.header()
        .tensors
        .iter()
        .find(|tensor| tensor.name == name)
}

/// Whether `found` in `target` has the bytes that the plan would give `tensor`.
///
/// # Errors
/// Those of both files.
pub fn same_passthrough(
    plan: &Plan,
    tensor: &Passthrough,
    target: &Source,
    found: &TensorInfo,
) -> Result<bool> {
    let info = &plan.source.header().tensors[tensor.tensor];
    let (mut source, mut expected, mut have) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < info.bytes() {
        let length = COMPARE_BYTES.min(info.bytes() - at);
        source.resize(length as usize, 0);
        plan.source.read(&mut source, info.start + at)?;
        let scaled = |bytes: u64| {
            tensor
                .conversion
                .map_or(bytes, |conversion| conversion.converted_bytes(bytes))
        };
        expected.resize(scaled(length) as usize, 0);
        match tensor.conversion {
            Some(conversion) => {
                conversion.apply(&source, &mut expected);
            }
            None => expected.copy_from_slice(&source),
        }
        have.resize(expected.len(), 0);
        target.read(&mut have, found.start + scaled(at))?;
        if have != expected {
            return Ok(false);
        }
        at += length;
    }
    Ok(true)
}

/// Compares the first, the last and some more kernel chunks of a unit with the source, and its split positions.
fn sample(
    plan: &Plan,
    progress: &Progress,
    index: usize,
    stored: &StoredUnit,
    target: &Source,
) -> Result<()> {
    let (unit, layout) = (&plan.units[index], &stored.layout);
    let read = |buffer: &mut [u8], offset| target.read(buffer, offset);
    let wrong = |message: &str| wrong_bytes(plan, message).in_unit(&unit.name);
    let bytes = stored.bytes(&read, &wrong);
    let check = UnitCheck {
        bytes,
        progress,
        plan,
        unit,
    };
    let (mut source, mut memory) = (SpanMemory::default(), RunMemory::default());
    let place = stored.place.split_positions;
    if !bytes.has(&split_positions(unit), place, &mut memory)? {
        return Err((bytes.fault)("its split_positions are wrong"));
    }
    let tables = bytes.tables(plan.options.kernel, None)?;
    let spread = (1..=SAMPLES).map(|sample| sample * layout.chunks / (SAMPLES + 1));
    let mut chunks: Vec<_> = std::iter::once(0)
        .chain(spread)
        .chain([layout.chunks - 1])
        .collect();
    chunks.dedup();
    for chunk in chunks {
        let (from, to) = bytes.positions(chunk, chunk + 1, &mut Vec::new())?;
        read_weights(plan, index, from, to - from, &mut source)?;
        let weights = (&source.bytes[..], from);
        check.run(&tables, (chunk, chunk + 1), weights, &mut memory)?;
    }
    Ok(())
}
