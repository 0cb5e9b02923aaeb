"""A disk that is too small from the start, and one that fills during the run."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Length
from .world import World


@pytest.fixture
def small_disk(df11: Path, scratch: Path) -> Iterator[World]:
    """A world on a memory file system of its own."""
    folder = scratch / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"SKIP no file system can be mounted: {done.stderr.strip()}")
    try:
        yield World(df11, folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def resize(world: World, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", world.folder], check=True)


def test_a_disk_of_any_size(small_disk: World, rng: random.Random, length: Length) -> None:
    world = small_disk
    undisturbed = world.undisturbed()
    used = world.source.stat().st_size + 8192
    for number in range(length.changes * 3):
        options = [(), ("--header", "official")][number % 2]
        resize(world, used + rng.randrange(4096, len(undisturbed) + 65536))
        ended = world.run(*options)
        if ended.status:
            assert ended.status == 5, ended
            assert ended.error["code"] == "E_NO_SPACE", ended
            world.assert_clean()
        resize(world, 64 << 20)
        if ended.status == 0:
            world.take_result()


def test_a_disk_that_fills_meanwhile(small_disk: World, rng: random.Random, length: Length) -> None:
    """Another program takes the space: nothing is left, and with room the next run ends well."""
    world = small_disk
    undisturbed = world.undisturbed()
    hog = world.folder.parent / "disk" / "hog"
    for _ in range(length.changes):
        process = world.start("--max-rate", "20")
        while not world.partial.exists() or world.partial.stat().st_size < rng.randrange(100_000, 2_000_000):
            if process.poll() is not None:
                break
        try:
            with hog.open("wb") as file:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        except OSError:
            pass
        output, errors = process.communicate(timeout=60)
        hog.unlink()
        if process.returncode:
            assert process.returncode == 5, (output, errors)
            world.assert_clean()
            world.run().report  # noqa: B018
        assert world.take_result() == undisturbed
