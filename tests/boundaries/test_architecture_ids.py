"""Architectures are data: no code names one."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .rust_code import ROOT, shipped, strings

IDS = {tomllib.loads(path.read_text())["id"] for path in (ROOT / "architectures").glob("*.toml")}
# A loop over words for people, such as "Flux-shaped", is no use of an id.
NAMED = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, IDS), key=len, reverse=True))})(?![\w-])")


def files(ending: str) -> list[Path]:
    """Files of the repository outside its tests."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", f"*.{ending}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in done.stdout.splitlines()]
    return [ROOT / path for path in paths if "tests" not in path.parts and (ROOT / path).exists()]


def rust_texts(path: Path) -> Iterator[str]:
    yield from strings(shipped(path.read_text()))


def python_texts(path: Path) -> Iterator[str]:
    """String constants that are not docstrings."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def test_there_are_ids_and_files() -> None:
    assert len(IDS) >= 19
    assert len(files("rs")) > 40
    assert len(files("py")) > 15


def test_no_rust_file_names_an_architecture() -> None:
    assert not [(path.name, text) for path in files("rs") for text in rust_texts(path) if NAMED.search(text)]


def test_no_python_file_names_an_architecture() -> None:
    assert not [(path.name, text) for path in files("py") for text in python_texts(path) if NAMED.search(text)]


def test_the_pattern_finds_ids() -> None:
    assert NAMED.search("Flux")
    assert NAMED.search("for SDXL, the")
    assert not NAMED.search("a Flux-shaped model, Fluxes, SDXLTurbo")
