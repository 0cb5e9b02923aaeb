"""Interpreters, wheels and environments of these tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools import find_python

ROOT = Path(__file__).parents[2]
UV = ROOT / ".envs" / "tools" / "bin" / "uv"
MADE = ROOT / "dist" / "release"


def wheel(tag: str) -> Path:
    """The wheel of `make wheel-manylinux` whose tag ends so."""
    (found,) = MADE.glob(f"*{tag}.whl")
    return found


def interpreter(version: str) -> Path:
    """Python of a version, such as 3.9; skips the test where this machine has none."""
    found = find_python(version)
    if found:
        return Path(found)
    pytest.skip(f"SKIP Python {version}: not on this machine")


def environment(python: Path, folder: Path) -> Path:
    """A new, empty environment; returns its interpreter."""
    run(UV, "venv", "--quiet", "--no-project", "--python", python, folder)
    return folder / "bin" / "python"


def install(python: Path, wheel: Path) -> None:
    """Replaces whatever is there of the package, and asks no index."""
    run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--reinstall", "--python", python, wheel)


def comfyui_without_package(name: str, folder: Path) -> Path:
    """A copy of the ComfyUI environment of this name that lacks our package; skips the test where there is none.

    The files are shared by hard links: installers remove and make them anew, they don't write into them.
    """
    original = ROOT / ".envs" / name
    if not (original / ".ready").is_file():
        pytest.skip(f"SKIP {name}: not made; python3.11 scripts/envs/setup.py {name}")
    run("cp", "--archive", "--link", original, folder)
    run(UV, "pip", "uninstall", "--quiet", "--python", folder / "bin" / "python", "dfloat11-compress")
    return folder


def run(
    *command: object, cwd: Path | None = None, env: dict[str, str] | None = None, status: int = 0, seconds: int = 280
) -> str:
    """What a command said, both ways."""
    line = [str(part) for part in command]
    done = subprocess.run(line, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds)
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    return said


def search_path(*first: Path) -> str:
    """PATH without cargo."""
    rest = [folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "cargo").exists()]
    return os.pathsep.join([*map(str, first), *rest])
