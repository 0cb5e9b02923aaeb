//! Every changed bit that decoding or the format depends on is found.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    oracle,
    unit::{self, Unit},
    weights,
};
use df11_codec::{DecodeTables, LutError, MismatchKind, limits};

const LADDER: [(u8, u64); 7] = [
    (120, 9000),
    (121, 5001),
    (119, 3000),
    (118, 900),
    (117, 300),
    (0, 41),
    (90, 7),
];

/// Two chunks and a bit, with a tail that is not byte-aligned.
fn sample() -> Unit {
    for spare in 0.. {
        let mut counts = LADDER;
        counts[0].1 += spare;
        let weights = weights::with_exponents(&weights::from_counts(&counts, 90));
        let code = unit::official(&weights);
        if code.layout().bits % 8 == 3 {
            return unit::encode(&weights, &code, &[usize::MAX / 2]);
        }
    }
    unreachable!("some spare weight moves the end")
}

fn kind(unit: &Unit) -> MismatchKind {
    unit.check(&[2]).expect_err("a change goes unnoticed").kind
}

/// Flips bit `bit` of the tensor that `field` picks.
fn flipped(unit: &Unit, field: fn(&mut Unit) -> &mut Vec<u8>, bit: usize) -> Unit {
    let mut changed = unit.clone();
    field(&mut changed)[bit / 8] ^= 0x80 >> (bit % 8);
    changed
}

#[test]
fn every_gap_bit() {
    let unit = sample();
    for bit in 0..8 * unit.gaps.len() {
        let found = flipped(&unit, |u| &mut u.gaps, bit)
            .check(&[2])
            .unwrap_err();
        assert!(matches!(found.kind, MismatchKind::Gap { .. }), "{found:?}");
        assert_eq!(found.index, bit as u64 / 5);
    }
    // The first gap of the next chunk is checked with the run before it.
    let changed = flipped(&unit, |u| &mut u.gaps, 5 * 512 + 4);
    let (run, source) = changed.run(0, 1);
    assert_eq!(
        unit::check_run(&changed.luts, &run, source)
            .unwrap_err()
            .index,
        512
    );
}

#[test]
fn every_position_bit() {
    let unit = sample();
    for bit in 0..8 * unit.positions.len() {
        let changed = flipped(&unit, |u| &mut u.positions, bit);
        let (mut run, source) = unit.run(0, unit.chunks());
        run.output_positions = &changed.positions;
        let found = unit::check_run(&unit.luts, &run, source).unwrap_err();
        assert!(
            matches!(found.kind, MismatchKind::Position { .. }),
            "{found:?}"
        );
        assert_eq!(found.index, bit as u64 / 32);
        // A caller that believes the changed entry passes fewer weights.
        assert!(changed.check(&[1]).is_err());
    }
}

#[test]
fn every_kind_of_weight_bit() {
    let unit = sample();
    for bit in (0..8 * unit.n()).step_by(89) {
        let found = flipped(&unit, |u| &mut u.sign_mantissa, bit)
            .check(&[2])
            .unwrap_err();
        assert!(
            matches!(found.kind, MismatchKind::Weight { .. }),
            "{found:?}"
        );
        assert_eq!(found.index, bit as u64 / 8);
    }
    for bit in (0..16 * unit.n()).step_by(89) {
        let found = flipped(&unit, |u| &mut u.weights, bit)
            .check(&[2])
            .unwrap_err();
        assert!(
            matches!(found.kind, MismatchKind::Weight { .. }),
            "{found:?}"
        );
        assert_eq!(found.index, bit as u64 / 16);
    }
}

#[test]
fn every_kind_of_stream_bit() {
    let unit = sample();
    let tables: Vec<[u8; 256]> = unit
        .luts
        .chunks_exact(256)
        .map(|row| row.try_into().unwrap())
        .collect();
    let mut unnoticed = 0;
    for bit in (0..8 * unit.stream.len() - 8).step_by(37) {
        let changed = flipped(&unit, |u| &mut u.stream, bit);
        if changed.check(&[2]).is_err() {
            continue;
        }
        // What belongs to EOF decodes as its neighbour does. Then the GPU must see the same weights.
        unnoticed += 1;
        let gaps = (0..512 * unit.chunks())
            .map(|i| gap(&unit.gaps, i))
            .collect();
        let positions = (0..=unit.chunks())
            .map(|i| u32::try_from(unit.position(i)).unwrap())
            .collect();
        let stream = oracle::Stream {
            bytes: changed.stream,
            gaps,
            positions,
            bits: 0,
        };
        let decoded = oracle::gpu_decode(&tables, &stream, unit.n()).unwrap();
        assert_eq!(decoded, weights::exponents_of(&unit.weights), "bit {bit}");
    }
    assert!(unnoticed < 20, "{unnoticed}");
}

fn gap(packed: &[u8], index: usize) -> u8 {
    (0..5).map(|i| 5 * index + i).fold(0, |gap, bit| {
        gap << 1 | packed[bit / 8] >> (7 - bit % 8) & 1
    })
}

#[test]
fn every_length_and_the_entries_in_use() {
    let unit = sample();
    let lengths = unit.luts.len() - 256;
    for (exponent, _) in LADDER {
        let bit = 8 * (lengths + usize::from(exponent)) + 7;
        assert!(
            flipped(&unit, |u| &mut u.luts, bit).check(&[2]).is_err(),
            "length of {exponent}"
        );
        let mut changed = unit.clone();
        let entries = changed.luts[..lengths]
            .iter_mut()
            .filter(|value| **value == exponent);
        entries.for_each(|value| *value ^= 1);
        assert!(changed.check(&[2]).is_err(), "entries of {exponent}");
    }
}

#[test]
fn sizes_that_do_not_fit() {
    let unit = sample();
    let mut longer = unit.clone();
    longer.stream.push(0);
    assert_eq!(kind(&longer), MismatchKind::Length);
    let mut shorter = unit.clone();
    shorter.stream.pop();
    assert!(matches!(
        kind(&shorter),
        MismatchKind::Length | MismatchKind::Weight { .. }
    ));

    let (whole, source) = unit.run(0, unit.chunks());
    let n = unit.n() as u64;
    for claimed in [n - 1, n + 1, 0, u64::MAX] {
        let mut run = whole;
        run.unit_weights = claimed;
        assert!(
            unit::check_run(&unit.luts, &run, source).is_err(),
            "N = {claimed}"
        );
    }
    let limit = limits::MAX_UNIT_WEIGHTS;
    for (weights, bytes) in [(n, limit + 1), (limit + 1, whole.unit_bytes), (n, u64::MAX)] {
        let mut run = whole;
        (run.unit_weights, run.unit_bytes) = (weights, bytes);
        let found = unit::check_run(&unit.luts, &run, source).map_err(|mismatch| mismatch.kind);
        assert_eq!(found, Err(MismatchKind::Length));
    }
    for claimed in [0, 1, 4096] {
        let mut run = whole;
        run.unit_bytes = claimed;
        assert!(
            unit::check_run(&unit.luts, &run, source).is_err(),
            "B = {claimed}"
        );
    }
    assert!(unit::check_run(&unit.luts, &whole, &source[2..]).is_err());
    assert!(unit::check_run(&unit.luts, &whole, &[source, &[0, 0]].concat()).is_err());
    assert!(unit::check_run(&unit.luts, &whole, &[source, &[0]].concat()).is_err());
}

#[test]
fn slices_that_are_too_short() {
    let unit = sample();
    let tables = unit.tables();
    for (first, count) in [(0, 1), (1, 1), (0, unit.chunks())] {
        let (run, source) = unit.run(first, count);
        let cut = |slice: &'static str| {
            let mut run = run;
            let field = match slice {
                "stream" => &mut run.encoded_exponent,
                "gaps" => &mut run.gaps,
                "positions" => &mut run.output_positions,
                _ => &mut run.sign_mantissa,
            };
            *field = &field[..field.len() - 1];
            run
        };
        let mut out = vec![0; source.len()];
        assert_eq!(unit::check_run(&unit.luts, &run, source), Ok(()));
        assert_eq!(tables.decode_chunks(&run, &mut out), Ok(()));
        for slice in ["stream", "gaps", "sign_mantissa", "positions"] {
            let run = cut(slice);
            let found = unit::check_run(&unit.luts, &run, source).map_err(|mismatch| mismatch.kind);
            assert_eq!(found, Err(MismatchKind::Truncated), "{slice}");
            if slice != "positions" {
                let found = tables
                    .decode_chunks(&run, &mut out)
                    .map_err(|mismatch| mismatch.kind);
                assert_eq!(found, Err(MismatchKind::Truncated), "{slice}");
            }
        }
        let short = &mut out[..source.len() - 1];
        assert!(tables.decode_chunks(&run, short).is_err());
    }
}

#[test]
fn the_kernel_would_leave_its_buffers() {
    let unit = sample();
    for (entry, change) in [(1, 1), (1, u32::MAX), (2, 5), (2, 1 << 31)] {
        let mut changed = unit.clone();
        let value = u32::try_from(unit.position(entry))
            .unwrap()
            .wrapping_add(change);
        changed.positions[4 * entry..4 * entry + 4].copy_from_slice(&value.to_le_bytes());
        let tables = changed.tables();
        let (mut run, source) = unit.run(0, unit.chunks());
        run.output_positions = &changed.positions;
        let mut out = vec![0; source.len()];
        let found = tables.decode_chunks(&run, &mut out).unwrap_err();
        assert!(
            matches!(found.kind, MismatchKind::Position { .. }),
            "{found:?}"
        );
    }
}

#[test]
fn tables_that_cannot_be_decoded_with() {
    let luts = sample().luts;
    let error = |luts: &[u8]| DecodeTables::new(luts).unwrap_err();
    for bytes in [0, 255, 256, 511, 513, 19 * 256] {
        assert_eq!(error(&vec![0; bytes]), LutError::Size { bytes });
    }
    assert!(DecodeTables::new(&[0; 18 * 256]).is_ok());
    let mut jump = luts.clone();
    let tables = luts.len() / 256 - 1;
    jump[9] = u8::try_from(256 - tables).unwrap();
    assert_eq!(error(&jump), LutError::Jump { table: 0, entry: 9 });
    let mut long = luts;
    let at = long.len() - 256 + 33;
    long[at] = 33;
    assert_eq!(
        error(&long),
        LutError::Length {
            exponent: 33,
            bits: 33
        }
    );
}
