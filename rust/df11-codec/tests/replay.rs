//! Runs the fuzz targets of the codec on the inputs in `rust/fuzz/seeds`: those that fuzzing starts from, and those that once failed.

#[path = "../../fuzz/src/check_hostile.rs"]
mod check_hostile;
#[path = "../../fuzz/src/codec_round_trip.rs"]
mod codec_round_trip;
mod common;
#[path = "../../fuzz/src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../fuzz/src/kernels.rs"]
mod kernels;

use std::{fs, panic, path::Path};

use common::unit;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let inputs = fs::read_dir(folder).expect("a folder for each target");
    let mut replayed = 0;
    for input in inputs {
        let path = input.expect("readable").path();
        let bytes = fs::read(&path).expect("readable");
        assert!(
            panic::catch_unwind(|| run(&bytes)).is_ok(),
            "{}",
            path.display()
        );
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[test]
fn kernels() {
    replay("kernels", kernels::run);
}

#[test]
fn codec_round_trip() {
    replay("codec_round_trip", codec_round_trip::run);
}

#[test]
fn check_hostile() {
    replay("check_hostile", check_hostile::run);
}
