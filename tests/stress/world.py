"""A folder with a small checkpoint, and runs of `df11 compress` in it that end in many ways."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from support.tensors import Tensor, Tensors, bf16, write_safetensors
from support.toy import toy_architecture

SOURCE = "model.safetensors"
TARGET = "model-DF11.safetensors"
PARTIAL = TARGET + ".partial"
JOURNAL = TARGET + ".journal"
# Of units that are read once, twice, and not at all after others; some tensors between them.
UNITS = (300_000, 700_000, 20_000, 1_500_000, 400_000, 600_000)

# A file's bytes, or those of a folder's files by name.
Result = bytes | dict[str, bytes]


def tensors(scale: float = 1) -> Tensors:
    """Seven megabytes of weights, or as many times that as `scale` says."""
    rng = np.random.default_rng(11)
    made: Tensors = {}
    for number, size in enumerate(UNITS):
        values = rng.standard_normal(int(size * scale), np.float32) * np.float32(0.02)
        made[f"one.{number}.weight"] = bf16(values)
        made[f"one.{number}.bias"] = bf16(values[:40])
    made["table"] = Tensor("U8", rng.integers(0, 200, int(500_000 * scale)).astype("|u1"))
    return made


@dataclass
class Ended:
    """A run that has ended."""

    status: int
    output: str
    errors: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        assert self.status == 0, (self.status, self.output, self.errors)
        return json.loads(self.output)

    @property
    def error(self) -> dict[str, Any]:
        assert self.status > 0, (self.status, self.output, self.errors)
        return json.loads(self.output)["error"]


class World:
    """A folder whose only files are the source and an architecture that takes it."""

    def __init__(self, df11: Path, folder: Path, scale: float = 1) -> None:
        self.df11 = df11
        self.folder = folder
        self.source = folder / SOURCE
        self.target = folder / TARGET
        self.partial = folder / PARTIAL
        self.journal = folder / JOURNAL
        self.restored = folder / "restored.safetensors"
        self.make_source(scale)
        self._source = self._source_state()
        self._results: dict[tuple[str, ...], Result] = {}

    def make_source(self, scale: float) -> None:
        (self.folder / "toy.toml").write_text(toy_architecture("one"))
        write_safetensors(self.source, tensors(scale))

    def start(
        self,
        *options: str,
        job: str = "compress",
        json_lines: bool = False,
        environment: dict[str, str] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> "subprocess.Popen[str]":
        """Starts a job of `df11`. `prepare` is called in the new process before the program is."""
        files = {
            "compress": [self.source, "-o", self.target, "--architectures", self.folder],
            "verify": [self.target],
            "restore": [self.target, "-o", self.restored],
        }
        command = [self.df11, job, *files[job], "--json-lines" if json_lines else "--json", *options]
        return subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=os.environ | (environment or {}),
            preexec_fn=prepare,
        )

    def run(self, *options: str, seconds: float = 120, **how: Any) -> Ended:
        """Runs to the end, which must come: nothing may hang."""
        started = time.monotonic()
        process = self.start(*options, **how)
        return wait(process, started, seconds)

    def undisturbed(self, *options: str) -> Result:
        """The result of a run that nothing disturbs."""
        if options not in self._results:
            self.run(*options).report  # noqa: B018
            self._results[options] = self.take_result()
        return self._results[options]

    def take_result(self) -> Result:
        """The finished file's bytes, or a folder's by name; nothing else is left, and it is removed."""
        assert self.files() == {self.source.name, self.target.name, "toy.toml"}
        result = contents(self.target)
        if self.target.is_dir():
            shutil.rmtree(self.target)
        else:
            self.target.unlink()
        self.assert_source_untouched()
        return result

    def may_be_left(self) -> set[str]:
        """What the folder may hold when a run was killed."""
        return {path.name for path in (self.source, self.target, self.partial, self.journal)} | {"toy.toml"}

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def assert_clean(self) -> None:
        assert self.files() == {self.source.name, "toy.toml"}
        self.assert_source_untouched()

    def assert_source_untouched(self) -> None:
        assert self._source_state() == self._source, "the source is another"

    def source_may_have_changed(self) -> None:
        """From now on it is this one."""
        self._source = self._source_state()
        self._results.clear()

    def _source_state(self) -> list[tuple[str, str, int]]:
        files = sorted(self.source.iterdir()) if self.source.is_dir() else [self.source]
        return [(file.name, digest(file), file.stat().st_mtime_ns) for file in files]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents(path: Path) -> Result:
    return {file.name: file.read_bytes() for file in path.iterdir()} if path.is_dir() else path.read_bytes()


def wait(process: "subprocess.Popen[str]", started: float, seconds: float = 120) -> Ended:
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"it goes on after {seconds} s") from None
    return Ended(process.returncode, output, errors, time.monotonic() - started)


def interrupt(process: "subprocess.Popen[str]") -> Ended:
    """Asks a run to stop, as Ctrl-C does; the time is that from the question on."""
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    return wait(process, started, 30)
