#!/usr/bin/env bash
# Tests the codec as 64-bit ARM code on an emulated processor. Prints SKIP and the reason where that cannot be had.
#
# Needs a compiler whose standard library for that target is installed, a linker and qemu: on Debian 12 the packages below, which are
# installed if this is Debian, the user is root and they are missing. Programs are linked statically: this qemu (7.2) does not return from
# creating a thread in a dynamically linked one.
set -euo pipefail
cd "$(dirname "$0")/.."

TARGET=aarch64-unknown-linux-gnu
COMPILER=/usr/bin/rustc
PACKAGES=(rustc-web libstd-rust-web-dev:arm64 qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

skip() {
    echo "SKIP check-arm: $1"
    exit 0
}

has_tools() {
    [ -e "/usr/lib/rustlib/$TARGET" ] && [ -x "$COMPILER" ] &&
        command -v qemu-aarch64-static aarch64-linux-gnu-gcc >/dev/null
}

if ! has_tools; then
    command -v apt-get >/dev/null || skip "no apt-get to install ${PACKAGES[*]} with"
    [ "$(id -u)" = 0 ] || skip "not root, and not installed: ${PACKAGES[*]}"
    dpkg --add-architecture arm64
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${PACKAGES[@]}"; } \
        >/dev/null || skip "apt-get cannot install ${PACKAGES[*]}"
    has_tools || skip "${PACKAGES[*]} are installed, but not where they are looked for"
fi

export RUSTC=$COMPILER
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
export PROPTEST_CASES=${PROPTEST_CASES:-20}
# Builds of another compiler would replace those of the usual one.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/check-arm
cargo test -p df11-codec --target "$TARGET" --lib --tests "$@"
