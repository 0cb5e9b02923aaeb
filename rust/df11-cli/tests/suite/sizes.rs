//! How sizes are written.

use crate::common::{World, code, errors, json};

#[test]
fn sizes_that_are_understood() {
    let world = World::new(10);
    for (text, bytes) in [
        ("268435456", 1_u64 << 28),
        ("268435456B", 1 << 28),
        ("256MiB", 1 << 28),
        ("256 mib", 1 << 28),
        ("256M", 1 << 28),
        ("262144k", 1 << 28),
        ("262144KiB", 1 << 28),
        ("1g", 1 << 30),
        ("1GiB", 1 << 30),
        ("100MB", 100_000_000),
        ("100000kB", 100_000_000),
        ("2GB", 2_000_000_000),
    ] {
        let report =
            json(&world.compress(&["--json", "--if-exists", "replace", "--max-memory", text]));
        assert_eq!(report["memory_budget"].as_u64(), Some(bytes), "{text}");
    }
}

#[test]
fn sizes_that_are_not() {
    let world = World::new(10);
    for text in [
        "",
        "MiB",
        "1.5GiB",
        "-1",
        "1TiB",
        "1 G B",
        "0x10",
        "18446744073709551616",
        "99999999999GiB",
    ] {
        let option = format!("--max-memory={text}");
        let output = world.compress(&[&option]);
        assert_eq!(code(&output), 2, "{text}");
        assert!(
            errors(&output).contains("--max-memory"),
            "{}",
            errors(&output)
        );
    }
    for text in ["", "0", "-1", "nan", "inf", "fast"] {
        let option = format!("--max-rate={text}");
        assert_eq!(code(&world.compress(&[&option])), 2, "{text}");
    }
    world.assert_clean();
}
