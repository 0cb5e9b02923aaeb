"""Stopping a job: soon, and nothing is left."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import df11_native
import pytest

from .conftest import Folder, wait_until


def job_threads() -> list[str]:
    return [name for name in map(name_of, Path("/proc/self/task").iterdir()) if name.startswith("df11-")]


def name_of(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return "ended"


def assert_cancelled(job: df11_native.Job, folder: Folder) -> None:
    asked = time.monotonic()
    assert job.join(5)
    assert time.monotonic() - asked < 1
    assert folder.is_clean()
    for _ in range(2):
        with pytest.raises(df11_native.CancelledError) as caught:
            job.result()
        assert caught.value.code == "E_CANCELLED"
    assert job.snapshot().phase != "done"
    wait_until(lambda: not job_threads(), 1)


@pytest.mark.parametrize("header", ["self-describing", "official"])
def test_cancel_in_the_middle(folder: Folder, header: str) -> None:
    job = folder.start_writing(header=header)
    job.cancel()
    job.cancel()
    assert_cancelled(job, folder)


def test_cancel_at_once(folder: Folder) -> None:
    for _ in range(20):
        job = folder.start()
        job.cancel()
        try:
            job.result()
        except df11_native.CancelledError:
            assert folder.is_clean()
        else:
            folder.target.unlink()


def test_cancel_while_another_thread_waits(folder: Folder) -> None:
    job = folder.start_writing()
    outcomes = []

    def wait() -> None:
        try:
            job.result()
        except df11_native.CancelledError as error:
            outcomes.append(error.code)

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for thread in waiting:
        thread.start()
    time.sleep(0.1)
    assert outcomes == []
    job.cancel()
    for thread in waiting:
        thread.join(1)
    assert outcomes == ["E_CANCELLED"] * 3


def test_cancel_after_the_end_changes_nothing(folder: Folder) -> None:
    job = folder.start()
    report = job.result()
    job.cancel()
    assert job.result() == report
    assert folder.target.exists()


def test_a_dropped_job_stops_and_leaves_nothing(folder: Folder) -> None:
    job = folder.start_writing()
    assert job_threads()
    del job
    gc.collect()
    wait_until(folder.is_clean, 1)
    wait_until(lambda: not job_threads(), 1)


def test_the_target_that_was_there_survives(folder: Folder) -> None:
    folder.target.write_bytes(b"somebody's file")
    job = folder.start_writing(if_exists="replace")
    job.cancel()
    job.join()
    assert folder.target.read_bytes() == b"somebody's file"
    assert not folder.partial.exists()
