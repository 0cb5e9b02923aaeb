//! Runs the fuzz target `header` on the inputs in `rust/fuzz/seeds`: those that fuzzing starts from, and those that once failed.

#[path = "../../fuzz/src/header.rs"]
mod header;
#[path = "../../fuzz/src/input.rs"]
#[allow(dead_code)]
mod input;

use std::{fs, panic, path::Path};

#[test]
fn headers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/header");
    let mut replayed = 0;
    for input in fs::read_dir(folder).unwrap() {
        let path = input.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(
            panic::catch_unwind(|| header::run(&bytes)).is_ok(),
            "{}",
            path.display()
        );
        replayed += 1;
    }
    assert!(replayed > 0);
}
