#!/usr/bin/env bash
# Runs each fuzz target of rust/fuzz for FUZZ_SECONDS (60), with the address sanitizer. `scripts/fuzz.sh TARGET...` runs some of them.
#
# The sanitizer and the coverage are unstable options of the compiler, which the stable one takes where it is told to. What is found
# lies in rust/fuzz/artifacts; cut it down with `cargo fuzz tmin`, and put it into rust/fuzz/seeds/TARGET once it is mended.
set -euo pipefail
# Leaks are not looked for: a job's thread may still be ending when its result is there.
cd "$(dirname "$0")/../rust/fuzz"
SECONDS_EACH=${FUZZ_SECONDS:-60}
export RUSTC_BOOTSTRAP=1

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
[ $# -gt 0 ] || set -- kernels codec_round_trip check_hostile header journal stored
for target in "$@"; do
    mkdir -p "corpus/$target"
    cargo fuzz run --fuzz-dir . "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$SECONDS_EACH" -timeout=60 -print_final_stats=1 -detect_leaks=0
done
