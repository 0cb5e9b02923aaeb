//! Files are not to be trusted: whatever the bytes, the decoder answers and does not panic.

mod common;

use common::{config, unit, weights};
use df11_codec::{ChunkRun, DecodeTables};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..5,
        0u64..20_000,
        any::<u32>().prop_map(u64::from),
        any::<u64>()
    ]
}

/// Tables of the right shape, with jumps that exist.
fn tables() -> impl Strategy<Value = Vec<u8>> {
    (
        1usize..=17,
        prop::collection::vec(any::<u8>(), 18 * 256),
        0u8..=33,
    )
        .prop_map(|(count, mut bytes, most)| {
            bytes.truncate((count + 1) * 256);
            let (rows, lengths) = bytes.split_at_mut(count * 256);
            for value in rows {
                let is_jump_too_far = *value >= 240 && 256 - usize::from(*value) >= count;
                *value = if is_jump_too_far {
                    *value - 240
                } else {
                    *value
                };
            }
            for length in lengths {
                *length %= most.max(1);
            }
            bytes
        })
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..max),
        (0u8..8, 0..max).prop_map(|(b, n)| vec![b; n])
    ]
}

/// Neither may panic. What they say about nonsense does not matter.
fn both(luts: &[u8], run: &ChunkRun<'_>, source: &[u8]) {
    let Ok(tables) = DecodeTables::new(luts) else {
        return;
    };
    let mut out = source.to_vec();
    let _ = tables.decode_chunks(run, &mut out);
    let _ = unit::check_run(luts, run, source);
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn random_luts(bytes in bytes(19 * 256)) {
        let _ = DecodeTables::new(&bytes);
    }

    #[test]
    fn random_runs(
        tables in tables(),
        numbers in (prop_oneof![Just(0), number()], number(), number()),
        stream in bytes(13_000),
        gaps in bytes(1300),
        positions in prop::collection::vec(prop_oneof![0u32..40, 0u32..30_000, any::<u32>()], 0..5),
        sign_mantissa in bytes(40_000),
    ) {
        let (first_chunk, unit_weights, unit_bytes) = numbers;
        let positions: Vec<u8> = positions.iter().flat_map(|p| p.to_le_bytes()).collect();
        let run = ChunkRun {
            first_chunk,
            unit_weights,
            unit_bytes,
            encoded_exponent: &stream,
            gaps: &gaps,
            output_positions: &positions,
            sign_mantissa: &sign_mantissa,
        };
        both(&tables, &run, &vec![0; 2 * sign_mantissa.len()]);
    }

    /// Close to a real unit, so that the walk goes far before it meets the damage.
    #[test]
    fn damaged_units(
        exponents in weights::exponents(40_000),
        damage in prop::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in (0usize..4, 0usize..10),
    ) {
        let weights = weights::with_exponents(&exponents);
        let mut unit = unit::encode(&weights, &unit::official(&weights), &[usize::MAX / 2]);
        for (field, at, value) in damage {
            let tensor = match field {
                0 => &mut unit.luts,
                1 => &mut unit.stream,
                2 => &mut unit.gaps,
                3 => &mut unit.positions,
                _ => &mut unit.sign_mantissa,
            };
            let at = at.index(tensor.len());
            tensor[at] = value;
        }
        let shorten = |field: usize, slice: &mut Vec<u8>| {
            slice.truncate(slice.len() - if cut.0 == field { cut.1.min(slice.len()) } else { 0 });
        };
        let unit_bytes = unit.stream.len() as u64;
        shorten(0, &mut unit.stream);
        shorten(1, &mut unit.gaps);
        shorten(2, &mut unit.positions);
        shorten(3, &mut unit.sign_mantissa);
        let run = ChunkRun {
            first_chunk: 0,
            unit_weights: unit.n() as u64,
            unit_bytes,
            encoded_exponent: &unit.stream,
            gaps: &unit.gaps,
            output_positions: &unit.positions,
            sign_mantissa: &unit.sign_mantissa,
        };
        both(&unit.luts, &run, &weights);
    }
}
