"""Timed runs of whole processes, and of workers that have started already."""

import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
DF11 = TARGET / "df11"
IO_TWIN = TARGET / "examples" / "io_twin"
MEMORY_RATES = TARGET / "examples" / "memory_rates"
PEERS_PYTHON = ROOT / ".envs" / "bench" / "bin" / "python"


@dataclass(frozen=True)
class Run:
    """One process from its start to its end."""

    seconds: float
    # Bytes that came from a disk, not from memory.
    disk_bytes: int
    output: bytes


def run(*command: object) -> Run:
    """Run a command to its end; what it prints is shown only where it fails."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{printed.decode()}failed with {process.returncode}")
    return Run(seconds, usage.ru_inblock * 512, printed)


def start_rates(weights: Path, threads: int, seconds: float, *unit: int) -> subprocess.Popen[bytes]:
    """Start our encoder and check in memory, in units of so many weights."""
    command = [MEMORY_RATES, weights, str(threads), str(seconds), *map(str, unit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def rates(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """What a process of `start_rates` found."""
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{MEMORY_RATES} failed with {process.returncode}")
    found: dict[str, float] = json.loads(output)
    return found


class Worker:
    """A program that takes a path a line and answers with one JSON object: the start of an interpreter is not timed."""

    def __init__(self, python: Path | str, script: Path, *arguments: object) -> None:
        command = [str(python), str(script), *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, path: Path) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.process.args} ended early")
        result: dict[str, Any] = json.loads(answer)
        return result

    def end(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


class Turns:
    """A lock file that is held while we measure, where there is one, and let go now and then for others."""

    # Between two rounds the lock is let go when it was held so long.
    SECONDS = 25

    def __init__(self, path: Path | None) -> None:
        self.file = path.open("a") if path else None
        self.since: float | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One round of measurements."""
        if self.file and self.since is None:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.monotonic()
        yield
        if self.since is not None and time.monotonic() > self.since + self.SECONDS:
            self.let_go()

    def let_go(self) -> None:
        """For others, while we do not measure."""
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        self.since = None


def tell(text: str) -> None:
    """A figure as it comes, for whoever waits; the tables come last."""
    print(text, file=sys.stderr, flush=True)


def rotated(items: Sequence[str], by: int) -> list[str]:
    """The items, beginning with another one each time: none is always the first after something else."""
    by %= len(items)
    return [*items[by:], *items[:by]]


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of runs that followed each other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
