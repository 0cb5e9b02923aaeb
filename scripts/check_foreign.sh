#!/usr/bin/env bash
# Type-checks the workspace for other systems: check_foreign.sh TARGET... Prints SKIP and the reason where that cannot be had.
#
# Code for them needs their standard library, here checked from its source by an unstable option that the stable compiler takes where it
# is told to. Compiler and source must be of one version: on Debian 12 the packages below, which are installed if this is Debian, the
# user is root and they are missing. Nothing is linked; the binutils are for the import libraries that Windows crates ask for.
set -euo pipefail
cd "$(dirname "$0")/.."

COMPILER=/usr/bin/rustc
PACKAGES=(rustc-web rust-web-src binutils-mingw-w64-x86-64)

skip() {
    echo "SKIP check of $TARGETS: $1"
    exit 0
}

has_tools() {
    [ -x "$COMPILER" ] && [ -e /usr/lib/rustlib/src/rust/library/std ] && command -v x86_64-w64-mingw32-dlltool >/dev/null
}

TARGETS=$*
if ! has_tools; then
    command -v apt-get >/dev/null || skip "no apt-get to install ${PACKAGES[*]} with"
    [ "$(id -u)" = 0 ] || skip "not root, and not installed: ${PACKAGES[*]}"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${PACKAGES[@]}"; } \
        >/dev/null || skip "apt-get cannot install ${PACKAGES[*]}"
    has_tools || skip "${PACKAGES[*]} are installed, but not where they are looked for"
fi

export RUSTC=$COMPILER RUSTC_BOOTSTRAP=1
# The standard library is compiled even for a check; no one runs it.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0
# Builds of another compiler would replace those of the usual one. The macros and build scripts serve all targets.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/check-foreign
for target in $TARGETS; do
    cargo check --locked --workspace -Zbuild-std=std,panic_unwind --target "$target"
done
