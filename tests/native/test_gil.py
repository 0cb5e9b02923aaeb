"""Calls release the GIL: other threads of the host go on.

The interpreter is kept from taking the GIL away by itself, so another thread can only run while a call gives it up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

import df11_native
import pytest

from .conftest import SLOW, Folder


class Counter:
    """A thread that counts whenever it gets the GIL, and gives it back at once."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped:
            self.count += 1
            time.sleep(0.0005)

    def stop(self) -> None:
        self.stopped = True
        self.thread.join()


@pytest.fixture
def counter() -> Iterator[Counter]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    counter = Counter()
    yield counter
    counter.stop()
    sys.setswitchinterval(interval)


def counted_during(counter: Counter, call: Callable[[], object], seconds: float = 5) -> int:
    """How far the other thread gets while this one does nothing but call; stops at once where it gets anywhere."""
    before = counter.count
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and counter.count == before:
        call()
    return counter.count - before


def test_python_alone_lets_nobody_run(counter: Counter) -> None:
    assert counted_during(counter, lambda: None, 0.5) == 0


@pytest.mark.parametrize("call", ["join", "result"])
def test_waiting_calls(folder: Folder, counter: Counter, call: str) -> None:
    job = folder.start(max_rate=4 * SLOW)
    before = counter.count
    getattr(job, call)()
    # The job takes most of a second; the thread counts two thousand times in one that it has to itself.
    assert counter.count - before > 100


@pytest.mark.parametrize("call", ["join", "snapshot", "cancel", "result"])
def test_short_calls_of_jobs(folder: Folder, counter: Counter, call: str) -> None:
    job = folder.start()
    job.join()
    assert counted_during(counter, getattr(job, call)) > 0


def test_join_without_waiting(folder: Folder, counter: Counter) -> None:
    job = folder.start_writing()
    assert counted_during(counter, lambda: job.join(0)) > 0
    job.cancel()
    job.join()


def test_start(folder: Folder, counter: Counter) -> None:
    plans = [folder.plan() for _ in range(300)]
    # All but the first find the target busy or done; that does not matter here.
    jobs: list[df11_native.Job] = []
    before = counter.count
    while plans and counter.count == before:
        jobs.append(df11_native.start(plans.pop()))
    assert counter.count > before
    for job in jobs:
        job.join()


def test_plan_and_inspect(folder: Folder, counter: Counter) -> None:
    assert counted_during(counter, folder.plan) > 0
    assert counted_during(counter, lambda: df11_native.inspect(folder.source)) > 0
    assert counted_during(counter, lambda: df11_native.contents(folder.source)) > 0
    assert counted_during(counter, folder.plan().estimate) > 0


@pytest.mark.parametrize("start", [df11_native.verify, df11_native.restore])
def test_checks_and_restorations(folder: Folder, counter: Counter, start: Callable[..., df11_native.Job]) -> None:
    folder.start().result()
    assert counted_during(counter, lambda: start(folder.target)) > 0
    assert counted_during(counter, lambda: start(folder.target).result()) > 0
