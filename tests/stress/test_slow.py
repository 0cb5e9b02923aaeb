"""Disks that are slow, far away, or do not answer for a while: the bar and Stop do, and the file is the same."""

import json
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.disks import enter, forget, throttled
from support.faults import Faults

from .conftest import Length
from .world import World, interrupt, wait

RATE = 50_000_000
LATENCY = "read:*:50ms;write:*:50ms;sync:*:50ms"


class Lines:
    """Takes a program's lines of JSON as they come, with their times."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.objects: list[dict[str, Any]] = []
        self.times = [time.monotonic()]
        self._process = process
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.objects.append(json.loads(line))
            self.times.append(time.monotonic())

    def end(self, seconds: float = 120) -> dict[str, Any]:
        """The last object, once the program has ended."""
        with self._process:
            try:
                self._process.wait(seconds)
            finally:
                self._process.kill()
                self._thread.join()
        return self.objects[-1]

    def assert_came_every_second(self) -> None:
        """And each tells no less than the one before."""
        states = self.objects[:-1]
        assert states, "it took no second"
        assert {state["schema"] for state in states} == {"df11.progress/1"}
        for key in ("elapsed", "bytes_in", "bytes_out", "units_done"):
            told = [state[key] for state in states]
            assert told == sorted(told), key
        gaps = [after - before for before, after in zip(self.times[:-1], self.times[1:], strict=True)]
        assert max(gaps) < 2, gaps


@pytest.fixture
def throttle(scratch: Path) -> Iterator[Path]:
    with ExitStack() as stack:
        try:
            group = stack.enter_context(throttled(scratch, RATE))
        except OSError as error:
            pytest.skip(f"SKIP no disk can be slowed down here (blkio, cgroup version 1): {error}")
        yield group


def test_a_disk_of_50_mb_a_second(
    df11: Path, scratch: Path, throttle: Path, rng: random.Random, length: Length
) -> None:
    """Source and target on it: it is read once, in turns with writing, which the report says."""
    world = World(df11, scratch, scale=length.slow_scale)
    undisturbed = world.undisturbed()
    prepare = partial(enter, throttle)
    size = world.source.stat().st_size
    forget(world.source)
    lines = Lines(world.start(json_lines=True, prepare=prepare))
    report = lines.end()
    assert report["status"] == "done", report
    lines.assert_came_every_second()
    assert world.take_result() == undisturbed
    print(f"{report['seconds']:.1f} s for {size / 1e6:.0f} MB; {report['device_bytes_read'] / size:.3f} of it read")
    assert size / RATE * 0.9 < report["seconds"] < size / RATE * 3
    assert 0.95 * size <= report["device_bytes_read"] <= 1.05 * size
    assert any("reading and writing took turns" in note for note in report["notes"]), report["notes"]
    for _ in range(length.tries):
        forget(world.source)
        process = world.start(prepare=prepare)
        time.sleep(rng.uniform(0.2, size / RATE))
        ended = interrupt(process)
        assert ended.status == 130, ended
        assert ended.seconds < 1, ended
        world.assert_clean()


def await_true(is_so: Callable[[], bool]) -> None:
    """On a busy machine a program takes a while to begin."""
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_disk_far_away(world: World, faults: Faults, rng: random.Random, length: Length) -> None:
    """Every read and write takes 50 ms."""
    undisturbed = world.undisturbed()
    lines = Lines(world.start(json_lines=True, environment=faults.environment(LATENCY)))
    assert lines.end()["status"] == "done", lines.objects
    lines.assert_came_every_second()
    assert world.take_result() == undisturbed
    for _ in range(length.tries):
        process = world.start(environment=faults.environment(LATENCY))
        # Before, it plans, which any signal ends.
        await_true(world.partial.exists)
        time.sleep(rng.uniform(0, 2))
        ended = interrupt(process)
        assert ended.status == 130, ended
        assert ended.seconds < 1, ended
        world.assert_clean()


@pytest.mark.parametrize("job", ["compress", "verify", "restore"])
def test_a_read_that_stalls(world: World, faults: Faults, rng: random.Random, length: Length, job: str) -> None:
    """The state still comes while it does; then Stop is followed within a second, and what there was is as it was."""
    if job != "compress":
        world.run().report  # noqa: B018
    files = world.files()
    world.run(job=job, environment=faults.environment()).report  # noqa: B018
    reads = faults.calls()["read"]
    for name in world.files() - files:
        (world.folder / name).unlink()
    for _ in range(length.tries):
        rules = f"read:{rng.randrange(5, reads)}:{round(length.stall_seconds * 1000)}ms"
        process = world.start(job=job, json_lines=True, environment=faults.environment(rules))
        lines = Lines(process)
        await_true(faults.have_fired)
        time.sleep(1.3)
        assert lines.objects[-1]["schema"] == "df11.progress/1"
        asked = time.monotonic()
        process.send_signal(2)
        error = lines.end(20)["error"]
        seconds = time.monotonic() - asked
        assert (process.returncode, error["code"]) == (130, "E_CANCELLED"), error
        assert seconds < 1, f"{seconds} s"
        assert world.files() == files
    world.assert_source_untouched()


@pytest.mark.parametrize("jumps", ["86400", "-86400", "0,7200,-7200"])
def test_a_clock_that_jumps(world: World, faults: Faults, jumps: str) -> None:
    """During a run, and between it and the one that goes on: times are told right, and the file is the same."""
    undisturbed = world.undisturbed()
    lines = Lines(world.start("--max-rate", "3", json_lines=True, environment=faults.environment(clock=jumps)))
    report = lines.end()
    assert report["status"] == "done", report
    lines.assert_came_every_second()
    assert abs(report["seconds"] - (lines.times[-1] - lines.times[0])) < 1
    assert world.take_result() == undisturbed
    process = world.start("--max-rate", "10", environment=faults.environment(clock=jumps))
    while not world.journal.exists() or world.journal.stat().st_size < 2000:
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    wait(process, time.monotonic())
    resumed = world.run(environment=faults.environment(clock="0")).report
    assert any(note.startswith("went on from an interrupted run") for note in resumed["notes"])
    assert world.take_result() == undisturbed
