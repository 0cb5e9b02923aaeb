//! Whether the target already is the result of a plan.

use std::ops::RangeInclusive;

use df11_codec::UnitLayout;

use super::{
    reader::read_weights,
    span::SpanMemory,
    unit_check::{MAX_LUT_ROWS, RunMemory, UnitCheck},
};
use crate::{
    error::{Code, Result},
    header::{TensorEntry, TensorInfo},
    options::HeaderMode,
    output::{UNKNOWN, UnitPlace, manifest::Stamp, split_positions, unit_tensors},
    plan::{Passthrough, Plan},
    progress::Progress,
    source::Source,
};

/// Kernel chunks of a unit that are compared, besides its first and last.
const SAMPLES: u64 = 4;
/// One to 17 decode tables, and the row of code lengths.
const LUT_ROWS: RangeInclusive<u64> = 2..=MAX_LUT_ROWS as u64;
/// Bytes of a passthrough tensor that are compared at a time.
const COMPARE_BYTES: u64 = 1 << 20;

/// True where the target is a complete file with the plan's tensors and their sizes fit together: a self-describing one if its stamp is
/// the plan's, an official one if its passthrough tensors and a sample of its kernel chunks, decoded, equal the source.
///
/// # Errors
/// Those of the source, or `E_CANCELLED`.
pub fn is_result(plan: &Plan, progress: &Progress) -> Result<bool> {
    let Ok(target) = Source::open(&plan.target) else {
        return Ok(false);
    };
    let Some(units) = matching_units(plan, &target) else {
        return Ok(false);
    };
    if plan.options.header == HeaderMode::SelfDescribing {
        return Ok(Stamp::read(target.header()).is_some_and(|found| found.serves(&Stamp::of(plan))));
    }
    if !target.header().metadata.is_empty() {
        return Ok(false);
    }
    for tensor in &plan.passthrough {
        progress.check_cancelled()?;
        if !same_passthrough(plan, tensor, &target)? {
            return Ok(false);
        }
    }
    for (index, (place, layout)) in units.iter().enumerate() {
        progress.check_cancelled()?;
        match sample(plan, progress, index, *place, layout, &target) {
            Ok(()) => {}
            Err(error) if error.code == Code::Verify => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Places and sizes of the units in `target`, where it holds exactly the plan's tensors and each unit's sizes fit together.
fn matching_units(plan: &Plan, target: &Source) -> Option<Vec<(UnitPlace, UnitLayout)>> {
    let has = |tensor: &Passthrough| {
        find(target, &tensor.name)
            .is_some_and(|found| (tensor.dtype, &tensor.shape) == (found.dtype, &found.shape))
    };
    if target.header().tensors.len() != plan.units.len() * 6 + plan.passthrough.len()
        || !plan.passthrough.iter().all(has)
    {
        return None;
    }
    plan.units
        .iter()
        .map(|unit| {
            let tensors = unit_tensors(unit, &UNKNOWN).map(|expected| find(target, &expected.name));
            let [
                Some(bits),
                Some(gaps),
                Some(luts),
                Some(positions),
                Some(sign_mantissa),
                Some(split),
            ] = tensors
            else {
                return None;
            };
            let layout = UnitLayout {
                weights: unit.weights,
                bits: 0,
                lut_rows: luts.bytes() / 256,
                encoded_exponent_bytes: bits.bytes(),
                chunks: bits.bytes().div_ceil(df11_codec::limits::CHUNK_BYTES),
                gaps_bytes: gaps.bytes(),
                position_entries: positions.bytes() / 4,
            };
            let fits = unit_tensors(unit, &layout)
                .iter()
                .zip([bits, gaps, luts, positions, sign_mantissa, split])
                .all(|(a, b)| same_shape(a, b))
                && layout.chunks > 0
                && LUT_ROWS.contains(&layout.lut_rows)
                && layout.gaps_bytes == layout.chunks * df11_codec::limits::GAP_BYTES_PER_CHUNK
                && (layout.chunks..=layout.chunks + 1).contains(&layout.position_entries);
            let at = |tensor: &TensorInfo| tensor.start;
            let place = UnitPlace {
                encoded_exponent: at(bits),
                gaps: at(gaps),
                luts: at(luts),
                output_positions: at(positions),
                sign_mantissa: at(sign_mantissa),
                split_positions: at(split),
            };
            fits.then_some((place, layout))
        })
        .collect()
}

fn find<'a>(file: &'a Source, name: &str) -> Option<&'a TensorInfo> {
    file.header()
        .tensors
        .iter()
        .find(|tensor| tensor.name == name)
}

fn same_shape(expected: &TensorEntry, found: &TensorInfo) -> bool {
    (expected.dtype, &expected.shape) == (found.dtype, &found.shape)
}

fn same_passthrough(plan: &Plan, tensor: &Passthrough, target: &Source) -> Result<bool> {
    let Some(found) = find(target, &tensor.name) else {
        return Ok(false);
    };
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
    place: UnitPlace,
    layout: &UnitLayout,
    target: &Source,
) -> Result<()> {
    let read = |buffer: &mut [u8], offset: u64| target.read(buffer, offset);
    let check = UnitCheck {
        read: &read,
        progress,
        plan,
        unit: &plan.units[index],
        place,
        layout,
    };
    let expected = split_positions(&plan.units[index]);
    let mut found = vec![0; expected.len()];
    target.read(&mut found, place.split_positions)?;
    if found != expected {
        return Err(check.fault("its split_positions are wrong"));
    }
    let tables = check.tables(None)?;
    let spread = (1..=SAMPLES).map(|sample| sample * layout.chunks / (SAMPLES + 1));
    let mut chunks: Vec<_> = std::iter::once(0)
        .chain(spread)
        .chain([layout.chunks - 1])
        .collect();
    chunks.dedup();
    let (mut source, mut memory) = (SpanMemory::default(), RunMemory::default());
    for chunk in chunks {
        let (from, to) = check.positions(chunk, chunk + 1, &mut Vec::new())?;
        read_weights(plan, index, from, to - from, &mut source)?;
        let weights = (&source.bytes[..], from);
        check.run(&tables, (chunk, chunk + 1), weights, &mut memory)?;
    }
    Ok(())
}
