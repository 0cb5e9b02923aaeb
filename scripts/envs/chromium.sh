#!/usr/bin/env bash
# The browser of the tests in tests/browser: Debian's. Elsewhere any `chromium` on PATH serves; without one those tests print SKIP.
set -euo pipefail
command -v chromium >/dev/null && exit
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "SKIP: no chromium on PATH, and this user cannot install Debian's" >&2
    exit
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
