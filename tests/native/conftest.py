"""A folder with a tiny checkpoint, and jobs in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import df11_native
import pytest

from support.tensors import Tensors, write_safetensors
from support.tiny_models import tiny_model

# A second for every megabyte of the source: the tiny checkpoint has three.
SLOW = 1_000_000
# The job outlasts any test.
STANDSTILL = 10_000
NAME = "model.safetensors"


class Folder:
    """A folder whose only file is the source."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path / NAME
        self.target = path / "model-DF11.safetensors"
        self.partial = path / "model-DF11.safetensors.partial"

    def write(self, tensors: Tensors) -> None:
        write_safetensors(self.source, tensors)

    def plan(self, **options: object) -> df11_native.Plan:
        return df11_native.plan(self.source, **options)

    def start(self, **options: object) -> df11_native.Job:
        return df11_native.start(self.plan(**options))

    def start_writing(self, **options: object) -> df11_native.Job:
        """A job that stands still in the middle of its work."""
        job = self.start(max_rate=STANDSTILL, **options)
        wait_until(self.partial.exists)
        return job

    def files(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())

    def is_clean(self) -> bool:
        return self.files() == [NAME]


def wait_until(reached: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.002)


@pytest.fixture(scope="session")
def tensors() -> Tensors:
    return tiny_model("Flux")


@pytest.fixture
def folder(scratch: Path, tensors: Tensors) -> Folder:
    made = Folder(scratch)
    made.write(tensors)
    return made
