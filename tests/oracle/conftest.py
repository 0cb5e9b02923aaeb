"""Fixtures of the comparisons with the official encoder."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(scratch_root: Path) -> Iterator[Path]:
    """A folder for all tests of a module, removed after them."""
    made = Path(tempfile.mkdtemp(dir=scratch_root))
    yield made
    shutil.rmtree(made)
