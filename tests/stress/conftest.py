"""How long the suite takes, and its random numbers.

Every choice follows from STRESS_SEED, which each test prints. STRESS_FULL=1 is the long form (`make stress`), of less
than an hour; without it the suite takes less than two minutes and is part of `make test`.
"""

import os
import random
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.faults import Faults

from .folder_world import FolderWorld
from .world import World

FULL = os.environ.get("STRESS_FULL") == "1"
SEED = int(os.environ.get("STRESS_SEED") or time.time_ns() % 1_000_000_000)


@dataclass(frozen=True)
class Length:
    """How often things are tried."""

    kills: int
    cancels: int
    fault_share: float
    mixed_seconds: float
    servers: int
    changes: int
    stall_seconds: float
    tries: int
    slow_scale: float
    cost_scale: float
    cost_runs: int


LENGTH = (
    Length(100, 1000, 1.0, 20 * 60, 25, 20, 30, 3, 30, 8, 5) if FULL else Length(8, 24, 0.015, 6, 0, 4, 3, 1, 12, 0, 0)
)


@pytest.fixture
def length() -> Length:
    return LENGTH


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of this test."""
    print(f"STRESS_SEED={SEED}")
    return random.Random(SEED ^ zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def world(df11: Path, scratch: Path) -> World:
    folder = scratch / "world"
    folder.mkdir()
    return World(df11, folder)


@pytest.fixture
def folder_world(df11: Path, scratch: Path) -> FolderWorld:
    folder = scratch / "folder-world"
    folder.mkdir()
    return FolderWorld(df11, folder)


@pytest.fixture
def faults(world: World, scratch: Path) -> Faults:
    return Faults.build(scratch, world.folder)
