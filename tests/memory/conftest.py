"""Runs of `df11 compress` on large made-up checkpoints."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .sources import ARCHITECTURE, FOLDER_ARCHITECTURE, make_piece, write_source

GB = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """A finished run: its report, and its peak resident memory in bytes."""

    report: dict
    peak: int


@dataclass(frozen=True)
class Bench:
    """Compresses a source of the folder, then removes the result."""

    df11: Path
    folder: Path

    @property
    def target(self) -> Path:
        return self.folder / "result.safetensors"

    def start(self, source: Path, *options: str, prepare: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        command = [self.df11, "compress", source, "-o", self.target, "--json", "--architectures", self.folder, *options]
        text = [str(part) for part in command]
        return subprocess.Popen(text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)

    def run(self, source: Path, *options: str, prepare: Callable[[], None] | None = None) -> Run:
        process = self.start(source, *options, prepare=prepare)
        peak = 0
        try:
            while process.poll() is None:
                peak = max(peak, high_water(process.pid))
                time.sleep(0.02)
            output, errors = process.communicate()
        finally:
            process.kill()
            if self.target.is_dir():
                shutil.rmtree(self.target)
            self.target.unlink(missing_ok=True)
        assert process.returncode == 0, (process.returncode, errors)
        return Run(json.loads(output), peak)


def high_water(pid: int) -> int:
    """VmHWM of a process in bytes; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


@pytest.fixture(scope="package")
def bench(df11: Path, scratch_root: Path) -> Iterator[Bench]:
    folder = scratch_root / "memory"
    folder.mkdir()
    (folder / "toy.toml").write_text(ARCHITECTURE)
    (folder / "toy-folder.toml").write_text(FOLDER_ARCHITECTURE)
    make_piece(folder)
    yield Bench(df11, folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def four_gb(bench: Bench) -> Path:
    path = bench.folder / "4.safetensors"
    write_source(path, bench.folder / "piece.bin", 4 * GB)
    return path
