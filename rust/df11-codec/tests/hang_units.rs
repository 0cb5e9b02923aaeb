//! Units whose official encoding hangs the decode kernel.

mod common;

use common::{assert::like_oracle, oracle, unit, weights};
use df11_codec::MismatchKind;

/// `data/hang_units.txt`: the exponents of one unit a line, two hexadecimal digits each. The official tool (0.5.0) encodes every one of
/// them, and the decode kernel does not return from any.
fn hang_units() -> Vec<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map_or(0, |d| d as u8);
    let unit = |line: &str| {
        line.as_bytes()
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    };
    include_str!("data/hang_units.txt")
        .lines()
        .map(unit)
        .collect()
}

#[test]
fn official_tables_hang_and_repaired_ones_decode() {
    let units = hang_units();
    assert_eq!(units.len(), 9);
    for exponents in units {
        let weights = weights::with_exponents(&exponents);
        let code = unit::official(&weights);
        assert!(code.repaired_table().is_some());
        like_oracle(&weights, &code, &[50]);

        let mut official = unit::encode(&weights, &code, &[50]);
        let (table, _) = oracle::limit(&oracle::count(&exponents));
        official.luts = oracle::luts(&table, true).0.concat();
        let walk = official.check(&[1]).map_err(|mismatch| mismatch.kind);
        assert_eq!(walk, Err(MismatchKind::Hang));
        let launch = official.decode(&[1]).map_err(|mismatch| mismatch.kind);
        assert_eq!(launch, Err(MismatchKind::Hang));

        // Bytes behind B do not exist for the kernel, even where the slice has some.
        let (mut run, source) = official.run(0, 1);
        let longer = [run.encoded_exponent, &[0xA5; 64]].concat();
        run.encoded_exponent = &longer;
        let walk = unit::check_run(&official.luts, &run, source).map_err(|mismatch| mismatch.kind);
        assert_eq!(walk, Err(MismatchKind::Hang));
    }
}

#[test]
fn dead_entries_stay_where_the_tail_does_not_reach_them() {
    let (mut repaired, mut kept) = (0, 0);
    for exponents in hang_units() {
        for shift in 0..exponents.len() {
            let mut rotated = exponents.clone();
            rotated.rotate_left(shift);
            let weights = weights::with_exponents(&rotated);
            let code = unit::official(&weights);
            like_oracle(&weights, &code, &[1000]);
            if code.repaired_table().is_some() {
                repaired += 1;
            } else {
                kept += 1;
            }
        }
    }
    assert!(repaired >= 9 && kept > 0, "{repaired} {kept}");
}
