"""What the release scripts know of the project: its files, its version and every place that holds one."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+")
# Tags of the wheels of a release, as pip reads them from the file names; each is for one platform of release.yml.
NATIVE_TAGS = {
    "cp39-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64",
    "cp39-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64",
    "cp39-abi3-win_amd64",
    "cp39-abi3-macosx_10_12_x86_64",
    "cp39-abi3-macosx_11_0_arm64",
}
PURE_TAG = "py3-none-any"


def pyproject(root: Path = ROOT) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())


def version(root: Path = ROOT) -> str:
    return pyproject(root)["project"]["version"]


def wheel_name(tag: str, root: Path = ROOT) -> str:
    name = re.sub(r"[-_.]+", "_", pyproject(root)["project"]["name"])
    return f"{name}-{version(root)}-{tag}.whl"


def released(root: Path = ROOT) -> str | None:
    """The newest version that the changelog calls released."""
    found = re.search(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    return found[1] if found else None


def crates(root: Path = ROOT) -> set[str]:
    """The crates of the workspace, whose folders are called as they are."""
    cargo = tomllib.loads((root / "Cargo.toml").read_text())
    return {Path(member).name for member in cargo["workspace"]["members"]}


def versions(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Every place that holds the project's version, and what it holds."""
    name = pyproject(root)["project"]["name"]
    yield "pyproject.toml", version(root)
    cargo = tomllib.loads((root / "Cargo.toml").read_text())
    yield "Cargo.toml", cargo["workspace"]["package"]["version"]
    own = crates(root)
    for lock in ("Cargo.lock", "rust/fuzz/Cargo.lock"):
        for package in tomllib.loads((root / lock).read_text())["package"]:
            if package["name"] in own:
                yield f"{lock}: {package['name']}", package["version"]
    for path in sorted((root / "workflows").glob("*.json")):
        for node in json.loads(path.read_text())["nodes"]:
            if node["properties"].get("cnr_id") == name:
                yield f"workflows/{path.name}: node {node['id']}", node["properties"]["ver"]
    if last := released(root):
        yield "CHANGELOG.md", last


def requirements(root: Path = ROOT) -> list[str]:
    """The lines of requirements.txt that pip would install."""
    lines = (line.strip() for line in (root / "requirements.txt").read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def wanted_requirements(root: Path = ROOT) -> list[str]:
    """What requirements.txt must hold. Nothing before the first release: a line that no index has stops the Manager."""
    last = released(root)
    return [f"{pyproject(root)['project']['name']}=={last}"] if last else []
