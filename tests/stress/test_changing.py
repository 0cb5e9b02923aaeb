"""What others do to the files of a run while it goes on."""

import os
import random
import time
from collections.abc import Callable

from .conftest import Length
from .world import World, wait


def touch(world: World) -> None:
    os.utime(world.source)


def write(world: World) -> None:
    with world.source.open("r+b") as file:
        file.seek(-5000, os.SEEK_END)
        file.write(b"\x3f" * 100)


def cut(world: World) -> None:
    os.truncate(world.source, world.source.stat().st_size // 2)


def grow(world: World) -> None:
    with world.source.open("ab") as file:
        file.write(b"more")


CHANGES: list[Callable[[World], None]] = [touch, write, cut, grow]


def test_a_source_that_changes_is_always_seen(world: World, rng: random.Random, length: Length) -> None:
    intact = world.source.read_bytes()
    for number in range(length.changes):
        started = time.monotonic()
        # A second and a half at least.
        process = world.start("--max-rate", "5")
        while not world.partial.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 1.2))
        CHANGES[number % len(CHANGES)](world)
        ended = wait(process, started)
        assert ended.error["code"] == "E_SOURCE_CHANGED", ended
        world.source.write_bytes(intact)
        world.source_may_have_changed()
        world.assert_clean()


def test_files_that_are_taken_away(world: World, rng: random.Random, length: Length) -> None:
    """The partial file or its journal vanishes: an error or a sound file, and the next run ends well."""
    undisturbed = world.undisturbed()
    for number in range(length.changes):
        victim = world.journal if number % 2 else world.partial
        started = time.monotonic()
        process = world.start("--max-rate", "30")
        while not world.journal.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.3))
        victim.unlink(missing_ok=True)
        ended = wait(process, started)
        if ended.status:
            assert ended.error["code"] == "E_WRITE", ended
            world.assert_clean()
            ended = world.run()
        assert ended.status == 0, ended
        assert world.take_result() == undisturbed


def test_a_target_that_changes(world: World, rng: random.Random, length: Length) -> None:
    """Where it may be replaced, it may also be gone or another; where it may not, one that appears is left alone."""
    undisturbed = world.undisturbed()
    for number in range(length.changes):
        replace = number % 3 < 2
        if replace:
            world.target.write_bytes(b"old")
        started = time.monotonic()
        process = world.start("--max-rate", "30", *(["--if-exists", "replace"] if replace else []))
        while not world.journal.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.15))
        if number % 3 == 0:
            world.target.unlink()
        else:
            world.target.write_bytes(b"somebody's")
        ended = wait(process, started)
        if replace:
            assert ended.status == 0, ended
            assert world.take_result() == undisturbed
        else:
            assert ended.error["code"] == "E_TARGET_EXISTS", ended
            assert world.target.read_bytes() == b"somebody's"
            world.target.unlink()
            world.assert_clean()


def test_a_folder_that_is_moved_away(world: World) -> None:
    """The run fails; with the folder in its place again, the next one goes on."""
    undisturbed = world.undisturbed()
    started = time.monotonic()
    process = world.start("--max-rate", "10")
    while not world.journal.exists() or world.journal.stat().st_size < 2000:
        assert process.poll() is None
        time.sleep(0.001)
    elsewhere = world.folder.with_name("elsewhere")
    world.folder.rename(elsewhere)
    ended = wait(process, started)
    assert ended.error["code"] == "E_WRITE", ended
    elsewhere.rename(world.folder)
    world.run().report  # noqa: B018
    assert world.take_result() == undisturbed
