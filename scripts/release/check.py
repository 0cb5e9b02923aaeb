"""Whether this tree and a folder of wheels may be published.

Usage: check.py [--tag vX.Y.Z] [--repository URL] [--wheels FOLDER]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from project import (
    NATIVE_TAGS,
    PURE_TAG,
    ROOT,
    pyproject,
    released,
    requirements,
    version,
    versions,
    wanted_requirements,
    wheel_name,
)


def faults(root: Path, tag: str | None, repository: str | None, wheels: Path | None) -> Iterator[str]:
    now = version(root)
    yield from (f"{place} has version {found} instead of {now}" for place, found in versions(root) if found != now)
    if requirements(root) != (wanted := wanted_requirements(root)):
        yield f"requirements.txt must hold {wanted or 'comments only'}"
    if tag is not None and tag != f"v{now}":
        yield f"the tag {tag} is not v{now}"
    if tag is not None and released(root) != now:
        yield f"CHANGELOG.md has no heading with a date for {now}: run scripts/release/prepare.py"
    named = pyproject(root)["project"]["urls"]["Repository"]
    if repository is not None and repository.rstrip("/").lower() != named.rstrip("/").lower():
        yield f"pyproject.toml names the repository {named}, and this is {repository}"
    if wheels is not None:
        wanted_names = {wheel_name(tag, root) for tag in [*NATIVE_TAGS, PURE_TAG]}
        names = {path.name for path in wheels.iterdir()}
        yield from (f"{name} is missing" for name in sorted(wanted_names - names))
        yield from (f"{name} belongs to no release" for name in sorted(names - wanted_names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag")
    parser.add_argument("--repository")
    parser.add_argument("--wheels", type=Path)
    options = parser.parse_args()
    found = list(faults(ROOT, options.tag, options.repository, options.wheels))
    if found:
        sys.exit("\n".join(found))
    print("all is well")


if __name__ == "__main__":
    main()
