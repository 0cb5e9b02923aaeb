"""Runs that are killed at random moments, until one ends: its file is that of an undisturbed run."""

import random
import subprocess

import pytest

from .conftest import Length
from .folder_world import FolderWorld
from .world import World

MODES = (
    (),
    ("--header", "official"),
    ("--keep-uncompressed",),
    ("--verify", "off", "--threads", "1"),
)
FOLDER_MODES = (
    (),
    ("--header", "official"),
    ("--keep-uncompressed",),
    ("--layout", "folder-single"),
)


def kill_until_done(world: World, options: tuple[str, ...], rng: random.Random, seconds: float) -> int:
    """Kills runs until one is quicker; how often one went on from the one before."""
    resumed = 0
    while True:
        process = world.start(*options)
        try:
            output, _ = process.communicate(timeout=rng.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        if process.returncode == 0:
            return resumed + ("went on from" in output)
        assert process.returncode < 0, output
        assert world.files() <= world.may_be_left()
        world.assert_source_untouched()
        # Which runs went on, only the last one tells; the journal tells for the others.
        resumed += world.journal.exists() and world.journal.stat().st_size > 2000


def kill_often(world: World, options: tuple[str, ...], rng: random.Random, times: int) -> None:
    """Runs that are killed until done, so often; each result is the undisturbed one."""
    undisturbed = world.undisturbed(*options)
    # The brake makes the moments of a run last alike.
    slow = (*options, "--max-rate", "30")
    seconds = world.run(*slow).seconds
    world.take_result()
    resumed = 0
    for _ in range(times):
        resumed += kill_until_done(world, slow, rng, seconds * 1.2)
        # Killed between its file's name and its last word, a run is done already.
        assert world.run(*options).report["status"] == "already-done"
        assert world.take_result() == undisturbed
    print(f"{resumed} runs went on from others")


@pytest.mark.parametrize("options", MODES, ids=" ".join)
def test_killed_at_random_moments(world: World, rng: random.Random, length: Length, options: tuple[str, ...]) -> None:
    kill_often(world, options, rng, max(1, length.kills // len(MODES)))


@pytest.mark.parametrize("options", FOLDER_MODES, ids=" ".join)
def test_folders_too(folder_world: FolderWorld, rng: random.Random, length: Length, options: tuple[str, ...]) -> None:
    kill_often(folder_world, options, rng, max(1, length.kills // len(FOLDER_MODES)))
