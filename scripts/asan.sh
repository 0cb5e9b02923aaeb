#!/usr/bin/env bash
# Runs the codec's tests of the kernels with the address sanitizer: an unstable option that the stable compiler takes where it is told to.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Zsanitizer=address
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/asan
export PROPTEST_CASES=${PROPTEST_CASES:-20}
# guard_pages has an allocator of its own.
cargo test -p df11-codec --target x86_64-unknown-linux-gnu --lib --test kernels --test ends --test hostile --test replay "$@"
