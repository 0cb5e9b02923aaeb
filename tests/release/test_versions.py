"""One version everywhere, and requirements.txt in the state that fits it."""

from __future__ import annotations

import datetime
import json
import subprocess
import tomllib
from pathlib import Path

import pytest

import check
import prepare
import project

ROOT = Path(__file__).parents[2]
NEXT = "99.0.1"


def test_every_place_has_the_same_version() -> None:
    places = dict(project.versions())
    assert {"pyproject.toml", "Cargo.toml", "Cargo.lock: df11-py", "rust/fuzz/Cargo.lock: df11-file"} <= set(places)
    assert any(place.startswith("workflows/") for place in places)
    assert not list(check.faults(ROOT, None, None, None))


def test_the_rust_that_is_asked_for_builds_every_dependency() -> None:
    """install.py compares with this number; an older one in a dependency would end in an error of cargo's instead."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    def number(version: str) -> tuple[int, ...]:
        return tuple(map(int, version.split(".")[:2]))

    packages = json.loads(done.stdout)["packages"]
    asked = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    needed = {package["name"]: package["rust_version"] for package in packages if package["rust_version"]}
    assert len(needed) > 50
    assert not {name: found for name, found in needed.items() if number(found) > number(asked)}
    assert f"(https://rustup.rs) {asked} or newer" in (ROOT / "README.md").read_text()


def test_the_script_prepares_a_release(tree: Path) -> None:
    prepare.main(NEXT, tree)
    assert set(dict(project.versions(tree)).values()) == {NEXT}
    assert project.requirements(tree) == [f"dfloat11-compress=={NEXT}"]
    assert not list(check.faults(tree, f"v{NEXT}", "https://github.com/dfloat11-compress/dfloat11-compress", None))
    changes = (tree / "CHANGELOG.md").read_text()
    assert f"## Unreleased\n\n## {NEXT} - {datetime.date.today()}\n\n### Added\n" in changes


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", NEXT, "99.0.0"])
def test_the_script_refuses_what_cannot_be_published(tree: Path, version: str) -> None:
    prepare.main(NEXT, tree)
    before = (tree / "CHANGELOG.md").read_text()
    with pytest.raises(SystemExit):
        prepare.main(version, tree)
    assert (tree / "CHANGELOG.md").read_text() == before


def test_a_release_says_what_is_new(tree: Path) -> None:
    prepare.main(NEXT, tree)
    with pytest.raises(SystemExit, match="nothing under Unreleased"):
        prepare.main("99.0.2", tree)


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("Cargo.toml", f'version = "{NEXT}"', 'version = "1.2.3"', "Cargo.toml has version 1.2.3 instead of"),
        ("rust/fuzz/Cargo.lock", NEXT, "1.2.3", "rust/fuzz/Cargo.lock: df11-codec has version"),
        ("CHANGELOG.md", f"## {NEXT} - ", f"## {NEXT} ", "no heading with a date"),
        ("requirements.txt", f"=={NEXT}", ">=1", "requirements.txt must hold"),
        ("requirements.txt", "dfloat11-compress", "# dfloat11-compress", "requirements.txt must hold"),
        ("pyproject.toml", "https://github.com/", "https://example.org/", "names the repository"),
    ],
)
def test_a_place_that_was_left_behind_is_named(tree: Path, file: str, old: str, new: str, fault: str) -> None:
    repository = project.pyproject(tree)["project"]["urls"]["Repository"]
    prepare.main(NEXT, tree)
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    assert any(fault in found for found in check.faults(tree, f"v{NEXT}", repository, None))


def test_before_the_first_release_nothing_is_required(tree: Path) -> None:
    text = (tree / "CHANGELOG.md").read_text()
    (tree / "CHANGELOG.md").write_text(text.partition("\n## 0")[0])
    assert project.wanted_requirements(tree) == []


def test_a_tag_of_another_version_is_refused() -> None:
    assert any("is not v" in found for found in check.faults(ROOT, "v0.0.0", None, None))


def test_a_release_has_every_wheel_and_no_other(tmp_path: Path) -> None:
    names = [project.wheel_name(tag) for tag in [*project.NATIVE_TAGS, project.PURE_TAG]]
    for name in names:
        (tmp_path / name).touch()
    assert not list(check.faults(ROOT, None, None, tmp_path))
    (tmp_path / names[0]).rename(tmp_path / "other.whl")
    assert {found.split()[0] for found in check.faults(ROOT, None, None, tmp_path)} == {names[0], "other.whl"}


def test_the_workflow_builds_every_wheel() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    targets = [line.split()[-1] for line in text.splitlines() if line.strip().startswith("- target: ")]
    assert len(targets) == len(project.NATIVE_TAGS)
    assert text.count("--zig --compatibility manylinux2014") == sum("manylinux" in tag for tag in project.NATIVE_TAGS)
    # Whoever owns an action could move a tag.
    uses = [line.split("uses: ")[1] for line in text.splitlines() if "uses: " in line]
    assert uses and all(len(use.split("@")[1].split(" ")[0]) == 40 for use in uses)
