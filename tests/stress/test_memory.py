"""The system gives less memory than is asked for: an error that says so, or a sound file."""

import os
import random
import resource
from pathlib import Path

import pytest

from .conftest import Length
from .world import World

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup/memory")


def test_address_space_that_is_refused(world: World, rng: random.Random, length: Length) -> None:
    """From what the program hardly starts with to more than enough.

    Where it is only just too little, Rust ends the program, as a crash does: then the next run goes on.
    """
    undisturbed = world.undisturbed()
    ends = {"done": 0, "refused": 0, "ended": 0}
    for _ in range(length.changes * 6):
        limit = round(2 ** rng.uniform(4.2, 9)) * MIB

        def refuse(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        ended = world.run(prepare=refuse)
        if ended.status == 5:
            assert ended.error["code"] == "E_NO_MEMORY", ended
            assert ended.error["hint"], ended
            world.assert_clean()
            ends["refused"] += 1
        elif ended.status:
            # 127: not even the system's libraries find room.
            assert ended.status in (127, -6), ended
            assert "memory allocation of" in ended.errors or "shared object" in ended.errors, ended
            ends["ended"] += 1
        else:
            ends["done"] += 1
        if ended.status:
            ended = world.run()
        assert ended.status == 0, ended
        assert world.take_result() == undisturbed
    print(ends)
    assert ends["done"] and ends["refused"] and ends["ended"] <= sum(ends.values()) // 3


def test_a_process_that_the_kernel_ends_for_want_of_memory(world: World) -> None:
    """Whatever is left then, the next run ends with the same file."""
    undisturbed = world.undisturbed()
    group = CGROUPS / f"df11-stress-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(24 * MIB))
    except OSError as error:
        pytest.skip(f"SKIP no memory cgroup (version 1) can be made: {error}")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    ended = world.run("--max-memory", "1GiB", prepare=enter)
    group.rmdir()
    assert ended.status in (0, -9), ended
    if ended.status:
        world.assert_source_untouched()
        world.run().report  # noqa: B018
    assert world.take_result() == undisturbed
