//! The one comparison that matters: crate against oracle.

use df11_codec::{CodeKind, UnitCode};

use super::{oracle, unit, weights};

/// The oracle's code table for a unit, and whether its tables carry.
fn table_of(code: &UnitCode, counts: &oracle::Counts) -> (oracle::CodeTable, bool) {
    let flattened = |floor, build: fn(&oracle::Counts) -> oracle::CodeTable| {
        let (expected, table) = oracle::flatten(counts, build);
        assert_eq!(floor, expected);
        table
    };
    match code.kind() {
        CodeKind::Official => {
            let (table, k) = oracle::limit(counts);
            assert_eq!(code.limited(), k.is_some());
            (table, true)
        }
        CodeKind::Flattened { floor } => {
            assert!(!oracle::fits(&oracle::limit(counts).0));
            (flattened(floor, oracle::huffman), true)
        }
        CodeKind::TwoBit { floor: None } => (oracle::two_bit(counts), false),
        CodeKind::TwoBit { floor: Some(floor) } => {
            assert!(!oracle::fits(&oracle::two_bit(counts)));
            (flattened(floor, oracle::two_bit), false)
        }
    }
}

/// Encodes in pieces of these sizes; compares every tensor with the oracle, and what the decoders read with the weights.
pub fn like_oracle(weights: &[u8], code: &UnitCode, sizes: &[usize]) {
    let exponents = weights::exponents_of(weights);
    let (table, carry) = table_of(code, &oracle::count(&exponents));
    let stream = oracle::encode(&exponents, &table);
    let (mut rows, headless) = oracle::luts(&table, carry);
    let is_official = code.kind() == CodeKind::Official;
    assert_eq!(
        code.official_crashes(),
        is_official && headless.contains(&0)
    );

    let hangs = oracle::gpu_decode(&rows, &stream, exponents.len()).is_none();
    let repaired = if hangs {
        headless.last().copied()
    } else {
        None
    };
    if let Some(index) = repaired {
        oracle::refill(&mut rows, &table, index);
    }
    assert_eq!(code.repaired_table(), repaired);
    let decoded = oracle::gpu_decode(&rows, &stream, exponents.len());
    assert_eq!(decoded.as_deref(), Some(&exponents[..]));

    let unit = unit::encode(weights, code, sizes);
    assert_eq!(unit.luts, rows.concat());
    assert_eq!(unit.stream, stream.bytes);
    assert_eq!(code.layout().bits, stream.bits as u64);
    assert_eq!(unit.gaps, oracle::pack_gaps(&stream.gaps));
    let positions: Vec<u8> = stream
        .positions
        .iter()
        .flat_map(|p| p.to_le_bytes())
        .collect();
    assert_eq!(unit.positions, positions);
    let halves: Vec<u8> = weights
        .chunks_exact(2)
        .map(|w| w[1] & 0x80 | w[0] & 0x7F)
        .collect();
    assert_eq!(unit.sign_mantissa, halves);
    assert_eq!(unit.decode(sizes).as_deref(), Ok(weights));
    assert_eq!(unit.check(sizes), Ok(()));
}
