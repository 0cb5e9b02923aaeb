"""With `low_priority` every thread of a job gives way to the host's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Folder, wait_until


def nice_of_threads() -> dict[str, list[int]]:
    """Nice values of this process's threads whose names begin with `df11-`, by name."""
    found: dict[str, list[int]] = {}
    for task in Path("/proc/self/task").iterdir():
        name = (task / "comm").read_text().strip()
        if name.startswith("df11-"):
            # Fields after the command's closing parenthesis begin with the third; nice is the 19th.
            nice = int((task / "stat").read_text().rpartition(")")[2].split()[16])
            found.setdefault(name, []).append(nice)
    return found


@pytest.mark.parametrize("low_priority", [True, False])
def test_threads_of_a_job(folder: Folder, low_priority: bool) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    job = folder.start_writing(low_priority=low_priority, threads=2)
    names = {"df11-job", "df11-read", "df11-flush", "df11-work", "df11-write"}

    def are_all_there() -> bool:
        threads = nice_of_threads()
        return set(threads) == names and len(threads["df11-work"]) == 2

    wait_until(lambda: job.snapshot().bytes_in > 0 and are_all_there())
    threads = nice_of_threads()
    job.cancel()
    job.join()
    values = [nice for values in threads.values() for nice in values]
    if low_priority:
        assert min(values) > own, threads
    else:
        assert set(values) == {own}, threads
    assert os.getpriority(os.PRIO_PROCESS, 0) == own, "the host's thread keeps its priority"
