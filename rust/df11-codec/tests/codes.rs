//! Codes of every kind, from one exponent to more than 17 tables and more than 32 bits.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert::like_oracle, oracle, unit, weights};
use df11_codec::{CodeError, CodeKind, ExponentHistogram, UnitCode, limits};

#[test]
fn one_exponent() {
    for n in [1, 7, 8, 9, 63, 64, 65, 1000, 23_550, 23_551, 32_768, 40_000] {
        let weights = weights::with_exponents(&vec![127; n]);
        let code = unit::official(&weights);
        assert!(code.official_crashes());
        assert_eq!(code.may_overfill_chunk(), n > 23_550);
        like_oracle(&weights, &code, &[n.div_ceil(3)]);
        let two_bit = unit::two_bit(&weights);
        assert!(!two_bit.may_overfill_chunk());
        like_oracle(&weights, &two_bit, &[n.div_ceil(3)]);
    }
}

#[test]
fn two_exponents() {
    for (a, b) in [(1, 1), (1, 9), (500, 500), (40_000, 3)] {
        let weights = weights::with_exponents(&weights::from_counts(&[(120, a), (121, b)], 120));
        like_oracle(&weights, &unit::official(&weights), &[777]);
        like_oracle(&weights, &unit::two_bit(&weights), &[777]);
    }
}

/// 200 rare exponents below `steps` ever more frequent ones: the rare ones' codes share a prefix and spread behind it.
fn rare_exponents(steps: u8) -> Vec<(u8, u64)> {
    let rare = (0..200).map(|e| (e, 1));
    rare.chain((0..steps).map(|i| (200 + i, 200 << i)))
        .collect()
}

#[test]
fn many_tables_and_too_many() {
    let mut tables = [Vec::new(), Vec::new()];
    for steps in 1..=10 {
        let weights = weights::with_exponents(&weights::from_counts(&rare_exponents(steps), 7));
        for code in [unit::official(&weights), unit::two_bit(&weights)] {
            let is_flattened = matches!(
                code.kind(),
                CodeKind::Flattened { .. } | CodeKind::TwoBit { floor: Some(_) }
            );
            tables[usize::from(is_flattened)].push(code.layout().lut_rows - 1);
            like_oracle(&weights, &code, &[5000]);
        }
    }
    let [as_built, flattened] = tables;
    assert!(
        as_built.iter().any(|&n| n > 4) && as_built.iter().all(|&n| n <= 17),
        "{as_built:?}"
    );
    assert!(
        !flattened.is_empty() && flattened.iter().all(|&n| n <= 17),
        "{flattened:?}"
    );
}

#[test]
fn seventeen_tables_and_not_one_more() {
    let mut seen = [0; 20];
    for steps in 7..=9 {
        for rare in 1..=200 {
            let mut counts = rare_exponents(steps);
            counts.retain(|&(e, _)| e < rare || e >= 200);
            let tables =
                oracle::prefixes(&oracle::huffman(&counts.iter().copied().collect())).len();
            let code = UnitCode::new(&histogram(&counts), 0).unwrap();
            assert_eq!(
                code.kind() == CodeKind::Official,
                tables <= 17,
                "{tables} tables"
            );
            seen[tables.min(19)] += 1;
        }
    }
    assert!(seen[17] > 0 && seen[18] > 0, "{seen:?}");
}

/// Each count the sum of the two before: the deepest trees there are.
fn fibonacci(n: u8, first: u64, second: u64) -> Vec<(u8, u64)> {
    let mut pair = (first, second);
    let next = |e| {
        let count = pair.0;
        pair = (pair.1, pair.0 + pair.1);
        (e, count)
    };
    (100..100 + n).map(next).collect()
}

fn histogram(counts: &[(u8, u64)]) -> ExponentHistogram {
    let mut all = [0; 256];
    for &(e, n) in counts {
        all[usize::from(e)] = n;
    }
    ExponentHistogram::from_counts(all)
}

/// Code lengths by exponent, from the tables' last row.
fn lengths(code: &UnitCode) -> Vec<u8> {
    code.luts()[code.luts().len() - 256..].to_vec()
}

#[test]
fn the_limiter_keeps_codes_within_32_bits() {
    let mut limited = 0;
    for n in 30..=43 {
        for (first, second) in [(1, 1), (1, 2), (2, 3), (3, 3)] {
            let counts = fibonacci(n, first, second);
            if counts.iter().map(|c| c.1).sum::<u64>() > limits::MAX_UNIT_WEIGHTS {
                continue;
            }
            let code = UnitCode::new(&histogram(&counts), 100).unwrap();
            let (table, k) = oracle::limit(&counts.iter().copied().collect());
            assert_eq!(code.limited(), k.is_some());
            limited += u32::from(code.limited());
            let (rows, _) = oracle::luts(&table, true);
            assert_eq!(lengths(&code), rows.last().unwrap());
            // With (3, 3) the two rarest exponents tie, but both are among the first two.
            assert!(!code.limiter_tie());
            if code.repaired_table().is_none() {
                assert_eq!(code.luts(), rows.concat());
            }
        }
    }
    assert!(limited > 10);
}

/// As deep as Fibonacci counts, but with two equal counts, numbers `twin` and `twin + 1`.
fn ladder_with_twins(n: u8, twin: u8) -> Vec<(u8, u64)> {
    // The sum of all counts below the last one, EOF's included: a count not below it is merged one level higher.
    let (mut below, mut last) = (1, 1);
    let mut counts = vec![(100, last)];
    for i in 1..n {
        let next = if i == twin {
            below + last
        } else {
            last.max(below)
        };
        below += last;
        last = if i == twin + 1 { last } else { next };
        counts.push((100 + i, last));
    }
    counts
}

#[test]
fn the_limiter_reports_a_tie_above_one() {
    let mut ties = 0;
    for n in 33..=38 {
        for twin in 0..20 {
            let counts = ladder_with_twins(n, twin);
            let code = UnitCode::new(&histogram(&counts), 100).unwrap();
            let (_, k) = oracle::limit(&counts.iter().copied().collect());
            let tie = k.is_some_and(|k| counts[k - 1].1 == counts[k].1 && counts[k].1 > 1);
            assert_eq!(code.limiter_tie(), tie, "{n}, {twin}");
            ties += u32::from(tie);
        }
    }
    assert!(ties > 0);
}

/// Nine million weights whose code would be 33 bits long. The oracle is too slow for them: it gives the lengths.
#[test]
fn a_limited_unit_survives() {
    let counts = fibonacci(34, 1, 1);
    let exponents = weights::from_counts(&counts, 100);
    let weights = weights::with_exponents(&exponents);
    let code = unit::official(&weights);
    assert!(code.limited());
    assert_eq!(lengths(&code).iter().max(), Some(&32));
    let unit = unit::encode(&weights, &code, &[1_000_003]);
    assert_eq!(unit.check(&[97]), Ok(()));
    assert!(unit.decode(&[1000]).unwrap() == weights);
}

#[test]
fn what_has_no_code_says_why() {
    let error = |counts: &[(u8, u64)]| UnitCode::new(&histogram(counts), 0).unwrap_err();
    assert_eq!(error(&[]), CodeError::Empty);
    assert_eq!(
        error(&[(3, 9), (240, 1)]),
        CodeError::ExponentTooLarge { exponent: 240 }
    );
    assert_eq!(
        error(&[(240, 1), (255, 1)]),
        CodeError::ExponentTooLarge { exponent: 255 }
    );
    let limit = limits::MAX_UNIT_WEIGHTS;
    assert_eq!(
        error(&[(0, 1 << 31)]),
        CodeError::TooLarge {
            found: 1 << 31,
            limit
        }
    );
    assert_eq!(
        error(&[(0, u64::MAX), (1, u64::MAX)]),
        CodeError::TooLarge {
            found: u64::MAX,
            limit
        }
    );
    assert!(UnitCode::new(&histogram(&[(239, limit)]), 239).is_ok());
    assert_eq!(
        UnitCode::two_bit(&histogram(&[]), 0).unwrap_err(),
        CodeError::Empty
    );
}
