"""Peak memory of `df11 compress` under real limits.

The peak is VmHWM, the most resident memory that the process ever had, read from /proc while it runs. Under
RLIMIT_DATA the process cannot even ask for more private memory; in a memory cgroup (version 1) the page cache counts
too, so surviving there is the proof.
"""

import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import GB, Bench, Run
from .sources import LARGEST, write_folder, write_source

MIB = 1 << 20
LIMIT = 256 * MIB
CGROUPS = Path("/sys/fs/cgroup/memory")

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


def limit_data(limit: int = LIMIT) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


@pytest.fixture(scope="module")
def limited(bench: Bench, four_gb: Path) -> Run:
    """The 4 GB source under 256 MiB."""
    return bench.run(four_gb, "--max-memory", "256MiB", prepare=limit_data)


def test_a_limit_on_data(limited: Run) -> None:
    print(f"VmHWM {limited.peak / MIB:.1f} MiB of 256 MiB, {limited.report['seconds']:.1f} s")
    assert limited.report["memory_budget"] == LIMIT
    assert max(unit["weights"] for unit in limited.report["units"]) == LARGEST
    assert 64 * MIB < limited.peak <= LIMIT


def test_a_folder_from_several_files(bench: Bench) -> None:
    source = bench.folder / "sharded"
    write_folder(source, bench.folder / "piece.bin", 2 * GB)
    run = bench.run(source, "--layout", "folder", "--max-memory", "256MiB", prepare=limit_data)
    shutil.rmtree(source)
    print(f"VmHWM {run.peak / MIB:.1f} MiB of 256 MiB, {run.report['seconds']:.1f} s")
    assert (run.report["layout"], len(run.report["units"])) == ("folder", 10)
    assert run.peak <= LIMIT


def test_less_memory_than_promised_is_an_error_and_no_crash(bench: Bench, four_gb: Path) -> None:
    process = bench.start(four_gb, "--max-memory", "256MiB", prepare=lambda: limit_data(150 * MIB))
    output, errors = process.communicate()
    assert process.returncode == 5, (process.returncode, errors)
    assert json.loads(output)["error"]["code"] == "E_NO_MEMORY"
    assert not list(bench.folder.glob("result*"))


def test_peaks_of_any_size_stay_in_the_budget(bench: Bench, limited: Run) -> None:
    peaks = {4: limited.peak}
    for size in (1, 2):
        source = bench.folder / f"{size}.safetensors"
        write_source(source, bench.folder / "piece.bin", size * GB)
        peaks[size] = bench.run(source, "--max-memory", "256MiB", prepare=limit_data).peak
        source.unlink()
    print("VmHWM by GB:", {size: f"{peak / MIB:.1f} MiB" for size, peak in peaks.items()})
    # How much of the budget is touched at all depends on how far the reader gets ahead.
    assert max(peaks.values()) <= 256 * MIB


def test_the_default_budget(bench: Bench, four_gb: Path) -> None:
    run = bench.run(four_gb)
    print(f"VmHWM {run.peak / MIB:.1f} MiB of {run.report['memory_budget'] / MIB:.1f} MiB")
    assert run.peak <= run.report["memory_budget"]


def test_many_threads_share_the_budget(bench: Bench, four_gb: Path) -> None:
    run = bench.run(four_gb, "--threads", "64", "--max-memory", "256MiB", prepare=limit_data)
    print(f"VmHWM {run.peak / MIB:.1f} MiB of 256 MiB with {run.report['threads']} threads")
    assert run.report["threads"] > 16
    assert run.peak <= LIMIT


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A memory cgroup of 256 MiB."""
    group = CGROUPS / f"df11-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no memory cgroup (version 1) can be made: {error}")
    yield group
    group.rmdir()


@pytest.mark.parametrize(
    ("limit", "options", "budget"),
    [(256, ["--max-memory", "256MiB"], 256), (256, [], 64), (2048, [], 512)],
    ids=["all of it", "default", "default in 2 GiB"],
)
def test_a_memory_cgroup(
    bench: Bench, four_gb: Path, cgroup: Path, limit: int, options: list[str], budget: int
) -> None:
    """Page cache counts there too. The default settings see the limit as if it were all of the machine's memory."""
    (cgroup / "memory.limit_in_bytes").write_text(str(limit * MIB))

    def enter() -> None:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))

    run = bench.run(four_gb, *options, prepare=enter)
    failures = int((cgroup / "memory.failcnt").read_text())
    print(f"VmHWM {run.peak / MIB:.1f} MiB of {budget} MiB; page cache was taken back {failures} times")
    # The program itself counts a little.
    assert 0.98 * budget * MIB <= run.report["memory_budget"] <= budget * MIB
    assert run.peak <= budget * MIB
    # The limit was felt: without it, the page cache alone would have grown beyond.
    assert failures > 0
