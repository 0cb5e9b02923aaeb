"""Turns the working tree into that of a release: prepare.py X.Y.Z. docs/RELEASE.md says what comes before and after.

Writes the version everywhere, dates the changelog, and pins the package in requirements.txt.
"""

import datetime
import json
import re
import sys
from pathlib import Path

from project import ROOT, VERSION, crates, pyproject, released, requirements, versions, wanted_requirements

HEADING = "## Unreleased\n"


def refuse_unfit(version: str, root: Path) -> None:
    if not VERSION.fullmatch(version):
        sys.exit(f"{version} is not of the form X.Y.Z")
    last = released(root)
    if last and tuple(map(int, version.split("."))) <= tuple(map(int, last.split("."))):
        sys.exit(f"{version} is not newer than {last}; no version can be published twice")
    changes = (root / "CHANGELOG.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    if "\n- " not in changes:
        sys.exit("CHANGELOG.md has nothing under Unreleased")


def replace(path: Path, pattern: str, new: str) -> None:
    """Replaces every match; there must be one."""
    text, count = re.subn(pattern, new, path.read_text(), flags=re.MULTILINE)
    if not count:
        sys.exit(f"{path.name} has no {pattern}")
    path.write_text(text)


def write(version: str, root: Path, day: datetime.date) -> None:
    name = pyproject(root)["project"]["name"]
    for file in ("pyproject.toml", "Cargo.toml"):
        replace(root / file, r'^version = "[\d.]+"$', f'version = "{version}"')
    for lock in ("Cargo.lock", "rust/fuzz/Cargo.lock"):
        own = rf'^(name = "(?:{"|".join(crates(root))})"\nversion = )"[\d.]+"$'
        replace(root / lock, own, rf'\g<1>"{version}"')
    for path in (root / "workflows").glob("*.json"):
        nodes = json.loads(path.read_text())["nodes"]
        if any(node["properties"].get("cnr_id") == name for node in nodes):
            replace(path, rf'("cnr_id": "{name}",\s*"ver": )"[\d.]+"', rf'\g<1>"{version}"')
    replace(root / "CHANGELOG.md", f"^{HEADING}", f"{HEADING}\n## {version} - {day.isoformat()}\n")
    about = "# The native part. Written by scripts/release/prepare.py; the Manager installs it.\n"
    (root / "requirements.txt").write_text(f"{about}{name}=={version}\n")


def main(version: str, root: Path = ROOT) -> None:
    refuse_unfit(version, root)
    write(version, root, datetime.date.today())
    odd = [f"{place} has {found}" for place, found in versions(root) if found != version]
    if requirements(root) != wanted_requirements(root):
        odd.append("requirements.txt does not pin it")
    if odd:
        sys.exit("the version did not get everywhere: " + "; ".join(odd))
    print(f"Everything says {version}. Look at `git diff`, commit, and go on in docs/RELEASE.md.")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
