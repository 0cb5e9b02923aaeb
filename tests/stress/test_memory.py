"""The system gives less memory than is asked for: an error that says so, or a sound file."""

import os
import random
import resource
from pathlib import Path

import pytest

from support import faults

from .conftest import Length
from .world import World

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup/memory")
REFUSED_MALLOC = Path(faults.__file__).with_name("refused_malloc.c")


@pytest.fixture
def refused_malloc(scratch: Path) -> Path:
    """The library that refuses a program one request for memory."""
    return faults.preloaded(REFUSED_MALLOC, scratch)


@pytest.mark.parametrize("job", ["compress", "verify", "restore"])
def test_address_space_that_is_refused(world: World, rng: random.Random, length: Length, job: str) -> None:
    """From what the program hardly starts with to more than enough.

    Where a few kilobytes decide, the program may still be ended, as by a crash: then the next run goes on.
    """
    undisturbed = world.undisturbed()
    if job != "compress":
        world.run().report  # noqa: B018
    files = world.files()
    ends = {"done": 0, "refused": 0, "ended": 0}
    tries = length.changes * 6
    for number in range(tries):
        # All sizes have their share: some are always too small, some large enough.
        limit = round(2 ** (3.6 + 5.4 * (number + rng.random()) / tries) * MIB)

        def refuse(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        ended = world.run(job=job, prepare=refuse)
        if ended.status == 5:
            assert ended.error["code"] == "E_NO_MEMORY", ended
            assert ended.error["hint"], ended
            assert world.files() == files
            ends["refused"] += 1
        elif ended.status:
            # No room for the system's libraries, or for the signals of a new thread; or all of the reserve is gone.
            reasons = {127: ["shared object"], -6: ["alternative stack", "memory allocation of"]}
            assert any(reason in ended.errors for reason in reasons.get(ended.status, [])), ended
            ends["ended"] += 1
        else:
            ends["done"] += 1
        if ended.status:
            ended = world.run(job=job)
        assert ended.status == 0, ended
        if job == "compress":
            assert world.take_result() == undisturbed
        elif job == "restore":
            assert world.restored.read_bytes() == world.source.read_bytes()
            world.restored.unlink()
    world.assert_source_untouched()
    print(ends)
    assert ends["done"] and ends["refused"] and ends["ended"] <= sum(ends.values()) // 10


def test_one_request_that_is_refused(
    world: World, scratch: Path, refused_malloc: Path, rng: random.Random, length: Length
) -> None:
    """Rust would end the program there. The reserve grants it; then the job ends, if it is not about to anyway."""
    undisturbed = world.undisturbed()
    counts = scratch / "asked"
    environment = {"LD_PRELOAD": str(refused_malloc), "DF11_ASKED": str(counts)}
    world.run(environment=environment).report  # noqa: B018
    world.take_result()
    total = int(counts.read_text())
    refused = 0
    for _ in range(length.changes * 6):
        # Planning asks most often, and goes on.
        number = total - int(rng.uniform(0, total**0.25) ** 4)
        ended = world.run(environment=environment | {"DF11_REFUSED": str(number)})
        if ended.status:
            assert ended.error["code"] == "E_NO_MEMORY", (number, ended)
            world.assert_clean()
            refused += 1
            ended = world.run()
        assert ended.status == 0, (number, ended)
        assert world.take_result() == undisturbed
    print(f"{refused} of {length.changes * 6} jobs ended at one of {total} requests")
    assert refused


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
