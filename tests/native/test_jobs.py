"""Running jobs: snapshots, waiting, results."""

from __future__ import annotations

import math
import time

import df11_native
import pytest

from support.tensors import read_safetensors

from .conftest import SLOW, Folder

PHASES = ["checking", "reading", "compressing", "finishing", "done"]


def watch(job: df11_native.Job) -> list[df11_native.Snapshot]:
    """Snapshots from the start to the end, every few milliseconds."""
    seen = [job.snapshot()]
    while not job.join(0.003):
        seen.append(job.snapshot())
    return [*seen, job.snapshot()]


@pytest.mark.parametrize("header", ["self-describing", "official"])
@pytest.mark.parametrize("verify", ["full", "off"])
def test_snapshots_only_go_forward(folder: Folder, header: str, verify: str) -> None:
    plan = folder.plan(header=header, verify=verify, max_rate=4 * SLOW)
    names = {unit["name"] for unit in plan.report()["units"]}
    units = plan.units
    seen = watch(df11_native.start(plan))
    assert len(seen) > 50
    totals = {now.bytes_total for now in seen}
    assert len(totals - {0}) == 1
    for before, now in zip(seen, seen[1:], strict=False):
        assert before.bytes_in <= now.bytes_in
        assert before.bytes_total <= now.bytes_total
        assert before.bytes_out <= now.bytes_out
        assert before.unit <= now.unit
        assert before.elapsed < now.elapsed
        assert PHASES.index(before.phase) <= PHASES.index(now.phase)
    for now in seen:
        assert now.bytes_in <= now.bytes_total
        assert 0 <= now.unit <= now.units == units or (now.unit, now.units) == (0, 0)
        assert now.unit_name in names | {""}
    assert {now.unit_name for now in seen} > names, "every unit was seen in work"
    assert len({now.bytes_in for now in seen}) >= units
    # The extra pass is the official header's.
    assert ("reading" in {now.phase for now in seen}) == (header == "official")
    assert seen[0].bytes_in < max(totals) / 4, "the start was seen"
    last = seen[-1]
    assert (last.phase, last.unit_name) == ("done", "")
    assert (last.bytes_in, last.unit) == (last.bytes_total, units)
    passes = 2 if header == "official" else 1
    assert last.bytes_total <= passes * folder.source.stat().st_size
    written = sum(tensor.array.nbytes for tensor in read_safetensors(folder.target).values())
    # The few bytes that two pieces share count twice, the header not at all.
    assert written <= last.bytes_out < folder.target.stat().st_size


def test_elapsed_is_in_seconds(folder: Folder) -> None:
    started = time.monotonic()
    job = folder.start(max_rate=4 * SLOW)
    time.sleep(0.2)
    assert 0.2 <= job.snapshot().elapsed <= time.monotonic() - started
    report = job.result()
    took = time.monotonic() - started
    assert took >= folder.source.stat().st_size / (4 * SLOW) * 0.9, "the rate is held"
    assert 0.2 < report["seconds"] <= took


def test_result_can_be_asked_for_again(folder: Folder) -> None:
    job = folder.start()
    first = job.result()
    assert first == job.result()
    assert (first["schema"], first["status"]) == ("df11.report/1", "done")
    assert first["target"] == str(folder.target)
    assert first["target_bytes"] == folder.target.stat().st_size
    assert first["source_bytes"] == folder.source.stat().st_size
    assert first["target_bytes"] < first["source_bytes"]
    assert folder.files() == [folder.target.name, folder.source.name]
    # What the caller does to one report is not seen in the next.
    first["units"].clear()
    assert job.result()["units"]

    again = folder.start()
    assert again.result()["status"] == "already-done"
    assert again.snapshot().phase == "done"


def test_join_waits_as_long_as_it_is_told(folder: Folder) -> None:
    job = folder.start_writing()

    def waited(timeout: float) -> float:
        started = time.monotonic()
        assert job.join(timeout) is False
        return time.monotonic() - started

    assert 0.3 <= waited(0.3) < 0.6
    for none in (0, 0.0, -0.0, -1, -1e300, -math.inf, math.nan, 1e-300):
        assert waited(none) < 0.1, none
    with pytest.raises(TypeError):
        job.join("long")
    job.cancel()
    assert job.join(1) is True


@pytest.mark.parametrize("timeout", [None, 1e9, 1e19, 1e300, 2**70, math.inf])
def test_join_waits_for_the_end(folder: Folder, timeout: float | None) -> None:
    job = folder.start(max_rate=8 * SLOW)
    assert job.join(0) is False
    assert job.join(timeout) is True
    assert job.snapshot().phase == "done"
    assert folder.target.exists()
    for again in (0, -1, None):
        assert job.join(again) is True
