//! Streams that end around the border of a kernel chunk.

mod common;

use common::{assert::like_oracle, unit, weights};
use df11_codec::{MismatchKind, UnitCode};

type Build = fn(&[u8]) -> UnitCode;

/// Weights whose stream ends `past` bits behind a chunk border, with a last code of about as many bits as there are `rungs`.
///
/// Fibonacci counts give the long code with few weights. More of the most frequent exponent leave all lengths as they are and
/// move the end.
fn ending(rungs: u8, past: u64, build: Build) -> Vec<u8> {
    let mut counts = vec![(100, 1), (101, 1)];
    for i in 2..rungs {
        counts.push((
            100 + i,
            counts[usize::from(i) - 1].1 + counts[usize::from(i) - 2].1,
        ));
    }
    let top = usize::from(rungs) - 1;
    // Well above the others, so that it stays the largest node.
    counts[top].1 *= 2;
    let weights =
        |counts: &[(u8, u64)]| weights::with_exponents(&weights::from_counts(counts, 100));
    let length =
        |code: &UnitCode| u64::from(code.luts()[code.luts().len() - 256 + 99 + usize::from(rungs)]);
    let code = build(&weights(&counts));
    let bits = code.layout().bits;
    let mut missing = (past + 32_768 - bits % 32_768) % 32_768;
    if !missing.is_multiple_of(length(&code)) {
        missing += 32_768 * (missing % length(&code));
    }
    counts[top].1 += missing / length(&code);
    weights(&counts)
}

#[test]
fn every_end_around_a_chunk_border() {
    let (mut without_entry, mut opened_by_eof) = (0, 0);
    for build in [unit::official as Build, unit::two_bit] {
        for rungs in [4, 12, 20, 27] {
            for past in (0..=33).filter(|past| rungs < 27 || past % 8 < 2) {
                let weights = ending(rungs, past, build);
                let code = build(&weights);
                let layout = *code.layout();
                if layout.bits % 32_768 != past {
                    // An odd number of bits cannot be reached with codes of two bits.
                    continue;
                }
                let last = u64::from(code.luts()[code.luts().len() - 256 + 100]);
                if past > 0 && past < last {
                    if past % 8 == 0 {
                        assert_eq!(layout.position_entries, layout.chunks);
                        without_entry += 1;
                    } else {
                        assert_eq!(layout.position_entries, layout.chunks + 1);
                        opened_by_eof += 1;
                    }
                }
                like_oracle(&weights, &code, &[1, 10_000]);
            }
        }
    }
    assert!(without_entry >= 8, "{without_entry}");
    assert!(opened_by_eof >= 40, "{opened_by_eof}");
}

#[test]
fn a_short_positions_tensor_is_accepted_only_where_the_last_chunk_is_empty() {
    let weights = ending(20, 16, unit::official);
    let mut unit = unit::encode(&weights, &unit::official(&weights), &[4000]);
    assert_eq!(unit.positions.len(), 4 * unit.chunks());
    for lengths in [&[1][..], &[2], &[1000]] {
        assert_eq!(unit.check(lengths), Ok(()));
        assert_eq!(unit.decode(lengths).as_ref(), Ok(&weights));
    }
    // An encoder that writes the last entry all the same is right too.
    unit.positions
        .extend(u32::try_from(unit.n()).unwrap_or(0).to_le_bytes());
    assert_eq!(unit.check(&[1000]), Ok(()));

    for past in [0, 32] {
        let weights = ending(20, past, unit::official);
        let mut unit = unit::encode(&weights, &unit::official(&weights), &[4000]);
        unit.positions.truncate(4 * unit.chunks());
        let found = unit.check(&[1000]).map_err(|mismatch| mismatch.kind);
        assert!(
            matches!(
                found,
                Err(MismatchKind::Truncated | MismatchKind::Position { .. })
            ),
            "{past}: {found:?}"
        );
    }
}

#[test]
fn a_full_last_chunk_leaves_no_room_for_another_weight() {
    let weights = ending(20, 0, unit::official);
    let unit = unit::encode(&weights, &unit::official(&weights), &[4000]);
    let (mut run, source) = unit.run(0, unit.chunks());
    run.unit_weights += 1;
    let found = unit::check_run(&unit.luts, &run, source).map_err(|mismatch| mismatch.kind);
    assert_eq!(found, Err(MismatchKind::Length));
}

/// A chunk too many behind a stream that fills its last one: every weight, gap and position is right, the length is not.
#[test]
fn a_chunk_behind_the_end_is_found() {
    let weights = ending(20, 0, unit::official);
    let mut unit = unit::encode(&weights, &unit::official(&weights), &[4000]);
    unit.stream.push(0);
    unit.gaps.extend([0; 320]);
    let n = u32::try_from(unit.n()).unwrap_or(0);
    unit.positions.extend(n.to_le_bytes());
    for lengths in [&[1][..], &[1000]] {
        let found = unit.check(lengths).map_err(|mismatch| mismatch.kind);
        assert_eq!(found, Err(MismatchKind::Length));
    }
}

/// All chunks but an empty last one, with all gaps: that the run ends before the unit does cannot be seen.
#[test]
fn more_gaps_than_needed_do_no_harm() {
    for past in [16, 17] {
        let weights = ending(20, past, unit::official);
        let unit = unit::encode(&weights, &unit::official(&weights), &[4000]);
        let (mut run, source) = unit.run(0, unit.chunks() - 1);
        run.gaps = &unit.gaps;
        assert_eq!(unit::check_run(&unit.luts, &run, source), Ok(()));
        let mut out = vec![0; source.len()];
        assert_eq!(unit.tables().decode_chunks(&run, &mut out), Ok(()));
        assert_eq!(out, source);
    }
}
