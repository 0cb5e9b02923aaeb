//! Runs the fuzz targets `header`, `journal` and `stored` on the inputs in `rust/fuzz/seeds`: those that fuzzing starts from, and those that once failed.

#[path = "../../fuzz/src/header.rs"]
mod header;
#[path = "../../fuzz/src/input.rs"]
#[allow(dead_code)]
mod input;
#[path = "../../fuzz/src/journal.rs"]
#[allow(clippy::expect_used)]
mod journal;
#[path = "../../fuzz/src/stored.rs"]
#[allow(clippy::expect_used)]
mod stored;

use std::{fs, panic, path::Path};

#[allow(clippy::unwrap_used)]
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let mut replayed = 0;
    for input in fs::read_dir(folder).unwrap() {
        let path = input.unwrap().path();
        let bytes = fs::read(&path).unwrap();
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
fn headers() {
    replay("header", header::run);
}

#[test]
fn journals() {
    replay("journal", journal::run);
}

#[test]
fn stored_files() {
    replay("stored", stored::run);
}
