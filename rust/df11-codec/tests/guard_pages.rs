//! No kernel reads or writes beside its slices and buffers: here every allocation of the program stands between pages that may not be
//! touched.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/guarded.rs"]
mod guarded;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use common::{
    distributions,
    unit::{self, Unit},
};
use df11_codec::ChunkRun;
use guarded::Guarded;

#[global_allocator]
static MEMORY: Guarded = Guarded {
    at_start: AtomicBool::new(false),
};

/// Weights that a fast encoder handles at once, before it appends them to the piece.
const BLOCK: usize = 2048;

/// The check of a run whose slices end where their memory does.
fn check_run(unit: &Unit, first: usize, count: usize) {
    let (run, source) = unit.run(first, count);
    let own = |slice: &[u8]| Box::<[u8]>::from(slice);
    let (stream, gaps) = (own(run.encoded_exponent), own(run.gaps));
    let (positions, sign_mantissa) = (own(run.output_positions), own(run.sign_mantissa));
    let run = ChunkRun {
        encoded_exponent: &stream,
        gaps: &gaps,
        output_positions: &positions,
        sign_mantissa: &sign_mantissa,
        ..run
    };
    assert_eq!(unit::check_run(&unit.luts, &run, &own(source)), Ok(()));
}

fn encode_and_check(weights: &[u8], sizes: &[usize]) -> Unit {
    let weights = Box::<[u8]>::from(weights);
    let unit = unit::encode(&weights, &unit::official(&weights), sizes);
    check_run(&unit, 0, unit.chunks());
    unit
}

fn every_length(lengths: &[usize]) {
    for at_start in [false, true] {
        MEMORY.at_start.store(at_start, Relaxed);
        for (_, distribution) in distributions::ALL {
            let weights = distribution(2 * BLOCK + 20);
            for &n in lengths {
                let piece = if at_start { n / 3 + 1 } else { n };
                encode_and_check(&weights[..2 * n], &[piece]);
            }
        }
    }
}

#[test]
fn short_pieces() {
    every_length(&(1..=200).collect::<Vec<_>>());
}

#[test]
fn around_block_borders() {
    let lengths = (BLOCK - 35..=BLOCK + 35).chain(2 * BLOCK - 3..=2 * BLOCK + 20);
    every_length(&lengths.collect::<Vec<_>>());
}

#[test]
fn runs_of_chunks() {
    for (_, distribution) in distributions::ALL {
        let unit = encode_and_check(&distribution(100_000), &[30_001]);
        for first in 0..unit.chunks() {
            for count in 1..=(unit.chunks() - first).min(6) {
                check_run(&unit, first, count);
            }
        }
    }
}

/// The pages do what they are for.
#[test]
fn the_guards_are_there() {
    for n in [1, 7, 4096, 65_536, 70_001] {
        let bytes = vec![1u8; n].into_boxed_slice();
        let (first, last) = (bytes.as_ptr(), &raw const bytes[n - 1]);
        assert!(guarded::is_readable(first) && guarded::is_readable(last));
        assert!(
            !guarded::is_readable(last.wrapping_add(1))
                || !guarded::is_readable(first.wrapping_sub(1))
        );
    }
}
