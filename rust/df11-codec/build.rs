//! Finds out whether the compiler has AVX-512 intrinsics: Rust has them since 1.89, and older ones build the codec without. And whether
//! the target has NEON, with the byte order of the weights.
#![allow(clippy::print_stdout)]

use std::{env, process::Command};

/// The first minor version of Rust 1 that has them.
const FIRST_MINOR: u32 = 89;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(has_avx512, has_neon)");
    let target_is = |key, value| env::var(key).is_ok_and(|found| found == value);
    if target_is("CARGO_CFG_TARGET_ARCH", "aarch64")
        && target_is("CARGO_CFG_TARGET_ENDIAN", "little")
    {
        println!("cargo::rustc-cfg=has_neon");
    }
    let is_x86_64 = target_is("CARGO_CFG_TARGET_ARCH", "x86_64");
    if is_x86_64 && minor_version().is_some_and(|minor| minor >= FIRST_MINOR) {
        println!("cargo::rustc-cfg=has_avx512");
    }
}

/// Of `rustc 1.95.0 (...)`: 95.
fn minor_version() -> Option<u32> {
    let rustc = env::var_os("RUSTC")?;
    let output = Command::new(rustc).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').nth(1)?.parse().ok()
}
