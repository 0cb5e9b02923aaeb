//! What a unit's small tensors say, without decoding: tables, code lengths, positions, split positions.

use df11_codec::{
    DecodeTables, Kernel,
    limits::{FIRST_JUMP, MAX_WEIGHTS_PER_CHUNK},
};

use super::{
    unit_bytes::{MAX_LUT_ROWS, UnitBytes},
    units::StoredUnit,
};
use crate::error::Result;

/// Bytes of `output_positions` that are looked at together.
const POSITION_BYTES: u64 = 1 << 16;

/// Checks a unit and returns its decode tables and the weights of its members.
///
/// # Errors
/// `E_STRUCTURE`; those of the file.
pub fn check(
    unit: &StoredUnit,
    bytes: &UnitBytes<'_>,
    kernel: Kernel,
) -> Result<(DecodeTables, Vec<u64>)> {
    let tables = bytes.tables(kernel, None)?;
    lengths(unit, bytes)?;
    positions(unit, bytes)?;
    Ok((tables, members(unit, bytes)?))
}

/// Code lengths are those of some prefix code that leaves room for EOF, and can fill the stream.
fn lengths(unit: &StoredUnit, bytes: &UnitBytes<'_>) -> Result<()> {
    let wrong =
        |message: &str| Err((bytes.fault)(message).in_tensor(&format!("{}.luts", unit.name)));
    let mut luts = [0; MAX_LUT_ROWS * 256];
    let luts = bytes.luts(&mut luts)?;
    let lengths = &luts[luts.len() - 256..];
    let used = || {
        lengths
            .iter()
            .filter(|&&bits| bits > 0)
            .map(|&bits| u64::from(bits))
    };
    // In units of 2^-32.
    let kraft: u64 = used().map(|bits| 1 << (32 - bits)).sum();
    if kraft >= 1 << 32 {
        return wrong("its code lengths leave no room for the end of the stream");
    }
    if lengths[usize::from(FIRST_JUMP)..]
        .iter()
        .any(|&bits| bits > 0)
    {
        return wrong("an exponent of 240 or more has a code");
    }
    let (shortest, longest) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
    let layout = &unit.layout;
    let bits = layout.encoded_exponent_bytes * 8;
    if shortest == 0 || layout.weights * shortest > bits || layout.weights * longest <= bits - 8 {
        return wrong("codes of these lengths cannot fill the stream");
    }
    Ok(())
}

/// Positions begin at 0, rise to the number of weights, and no kernel chunk holds more weights than the kernel can launch with.
fn positions(unit: &StoredUnit, bytes: &UnitBytes<'_>) -> Result<()> {
    let layout = &unit.layout;
    let wrong = |entry: u64, message: &str| {
        let error = (bytes.fault)(message).at_index(entry);
        Err(error.in_tensor(&format!("{}.output_positions", unit.name)))
    };
    let mut buffer = Vec::new();
    let (mut entry, mut before) = (0, 0);
    let total = layout.position_entries * 4;
    let mut at = 0;
    while at < total {
        buffer.resize(POSITION_BYTES.min(total - at) as usize, 0);
        (bytes.read)(&mut buffer, bytes.place.output_positions + at)?;
        for four in buffer.chunks_exact(4) {
            let position = four
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
            if entry == 0 && position != 0 {
                return wrong(entry, "the first position is not 0");
            }
            if position < before || position > layout.weights {
                return wrong(entry, "the positions do not rise to the number of weights");
            }
            if position - before > MAX_WEIGHTS_PER_CHUNK {
                return wrong(
                    entry,
                    "the kernel chunk before has more weights than the decode kernel can be launched with",
                );
            }
            before = position;
            entry += 1;
        }
        at += buffer.len() as u64;
    }
    if before != layout.weights {
        return wrong(entry - 1, "the last position is not the number of weights");
    }
    Ok(())
}

/// The weights of each member, by the split positions.
///
/// # Errors
/// `E_STRUCTURE`; those of the file.
pub fn members(unit: &StoredUnit, bytes: &UnitBytes<'_>) -> Result<Vec<u64>> {
    let wrong = |entry: usize| {
        let message = "the split positions do not rise within the unit";
        let error = (bytes.fault)(message).at_index(entry as u64);
        error.in_tensor(&format!("{}.split_positions", unit.name))
    };
    let mut buffer = vec![0; (unit.members as usize - 1) * 8];
    (bytes.read)(&mut buffer, bytes.place.split_positions)?;
    let (mut before, mut members) = (0, Vec::new());
    for (entry, eight) in buffer.chunks_exact(8).enumerate() {
        let split = eight
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte));
        if split < before || split > unit.layout.weights {
            return Err(wrong(entry));
        }
        members.push(split - before);
        before = split;
    }
    members.push(unit.layout.weights - before);
    Ok(members)
}
