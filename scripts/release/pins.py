"""Prints the lines of the release environment's lock for some packages: pins.py PACKAGE..."""

import re
import sys

from project import ROOT


def pins(names: list[str]) -> str:
    lock = (ROOT / "scripts" / "envs" / "locks" / "release.txt").read_text()
    entries = {entry.partition("==")[0]: entry for entry in re.split(r"\n(?=\S)", lock.strip())}
    missing = [name for name in names if name not in entries]
    if missing:
        sys.exit(f"the lock has no {', '.join(missing)}")
    return "\n".join(entries[name] for name in names)


if __name__ == "__main__":
    print(pins(sys.argv[1:]))
