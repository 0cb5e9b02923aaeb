"""A stand-in for `df11_native` of the same shape (test_fake_native.py compares it with the stub file)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__version__ = "0.1.0"
PROTOCOL = 3


class Df11Error(Exception):
    code = "E_UNKNOWN"
    hint = ""
    path: str | None = None
    unit: str | None = None
    tensor: str | None = None
    index: int | None = None


class RefusedError(Df11Error):
    code = "E_REFUSED"


class VerificationError(Df11Error):
    code = "E_VERIFY"


class SpaceError(Df11Error):
    code = "E_SPACE"


class TargetExistsError(Df11Error):
    code = "E_TARGET_EXISTS"


class CancelledError(Df11Error):
    code = "E_CANCELLED"


LOADER = {"node": "SomeLoader", "pack": "SomePack", "url": "https://example.org/pack", "note": ""}


@dataclass
class Script:
    """What the stand-in does next."""

    seconds: float = 0.0
    source_bytes: int = 1_000_000
    fail: Exception | BaseException | None = None
    """Raised by `plan`."""
    fail_late: Exception | None = None
    """Raised by `Job.result`."""
    target: str | None = None
    """A name other than the planned one, as `number` gives."""
    broken_definitions: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    """Changes to the report."""
    planned: dict[str, Any] = field(default_factory=dict)
    """Changes to the report of a plan."""
    refused: dict[str, Exception] = field(default_factory=dict)
    """Raised by `plan` for the files of these names."""
    df11: dict[str, Any] | None = None
    """What `contents` finds."""
    unreadable: Exception | None = None
    """Raised by `contents`."""
    stall: tuple[str, threading.Event] | None = None
    """The function of this name takes until the event, at most 5 s, as on a disk that does not answer."""
    plans: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    restorations: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)


script = Script()


def _look(name: str) -> None:
    if script.stall and script.stall[0] == name:
        script.stall[1].wait(5)


@dataclass
class Snapshot:
    phase: str
    bytes_in: int
    bytes_total: int
    bytes_out: int
    unit: int
    units: int
    unit_name: str
    elapsed: float


class Plan:
    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.architecture = "Alpha"
        self.units = 4

    def report(self) -> dict[str, Any]:
        return {
            "schema": "df11.plan/1",
            "source": self.source,
            "target": self.target,
            "source_bytes": script.source_bytes,
            "architecture": "Alpha",
            "architecture_name": "Alpha 1",
            "definition": "built in",
            "loader": LOADER,
            "prefix": "",
            "units": [{"name": "some.unit", "weights": 400_000, "tensors": ["some.unit.weight"]}],
            "passthrough_bytes": 200_000,
            "dropped": [],
            "dropped_bytes": 0,
            "predicted_bytes": script.source_bytes * 69 // 100,
            "free_bytes": 10**12,
            "same_disk": True,
            "rotating_disk": False,
            "tensors": [],
            "notes": [],
            **script.planned,
        }

    def estimate(self) -> dict[str, Any]:
        return {
            "schema": "df11.expectation/1",
            "threads": 2,
            "memory_budget": 1 << 30,
            "bytes_to_read": script.source_bytes,
            "bytes_to_write": script.source_bytes * 69 // 100,
            "compress_seconds": 3.0,
            "verify_seconds": 1.0,
        }


class Job:
    """Works in a thread of its own: a partial file, then the target, if there is one."""

    def __init__(self, plan: Plan, report: dict[str, Any] | None = None) -> None:
        self.plan = plan
        self.report = report
        self.cancelled = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        if not self.plan.target:
            self.cancelled.wait(script.seconds)
            return
        partial = self.plan.target + ".partial"
        with open(partial, "wb") as file:
            file.write(b"half")
        if self.cancelled.wait(script.seconds) or script.fail_late:
            os.remove(partial)
        else:
            os.replace(partial, self.plan.target)

    def snapshot(self) -> Snapshot:
        elapsed = time.monotonic() - self._started
        share = 1.0 if not self._thread.is_alive() else min(1.0, elapsed / max(script.seconds, 1e-9))
        done = int(share * script.source_bytes)
        phase = "compressing" if self._thread.is_alive() else "done"
        return Snapshot(phase, done, script.source_bytes, done * 2 // 3, int(4 * share), 4, "some.unit", elapsed)

    def cancel(self) -> None:
        self.cancelled.set()

    def join(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def result(self) -> dict[str, Any]:
        self._thread.join()
        if script.fail_late:
            raise script.fail_late
        if self.report:
            return {**self.report, **script.report}
        unit = {"name": "some.unit", "weights": 1000, "bf16_bytes": 2000, "df11_bytes": 1400, "bits_per_weight": 11.2}
        return {
            "schema": "df11.report/1",
            "tool": "fake",
            "status": "done",
            "source": self.plan.source,
            "target": script.target or self.plan.target,
            "architecture": "Alpha",
            "architecture_name": "Alpha 1",
            "definition": "built in",
            "loader": LOADER,
            "header": "self-describing",
            "verify": "full",
            "source_bytes": script.source_bytes,
            "target_bytes": script.source_bytes * 2 // 3,
            "ratio": 2 / 3,
            "seconds": 2.0,
            "bytes_read": script.source_bytes,
            "units": [{**unit, "code": "official", "notes": []}],
            "notes": [],
            "threads": 2,
            "memory_budget": 1 << 28,
            **script.report,
        }


def plan(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    architecture: str = "auto",
    header: str = "self-describing",
    verify: str = "full",
    if_exists: str = "skip",
    cast: str = "none",
    keep_uncompressed: bool = False,
    max_memory: int | None = None,
    max_rate: int | None = None,
    threads: int | None = None,
    definitions: Sequence[str | os.PathLike[str]] = (),
    low_priority: bool = False,
) -> Plan:
    script.plans.append(dict(locals()))
    _look("plan")
    fault = script.fail or script.refused.get(os.path.basename(source))
    if fault:
        raise fault
    return Plan(str(source), str(target))


def start(plan: Plan) -> Job:
    job = Job(plan)
    script.jobs.append(job)
    return job


def verify(
    path: str | os.PathLike[str],
    *,
    level: str = "full",
    against: str | os.PathLike[str] | None = None,
    architecture: str = "auto",
    samples: int = 200,
    seed: int | None = None,
    threads: int | None = None,
    definitions: Sequence[str | os.PathLike[str]] = (),
    low_priority: bool = False,
) -> Job:
    script.checks.append(dict(locals()))
    _look("verify")
    if script.fail:
        raise script.fail
    report = {
        "schema": "df11.verify/1",
        "file": str(path),
        "bytes": script.source_bytes,
        "level": level,
        "units": 4,
        "weights": 4_000_000,
        "chunks": 300,
        "chunks_decoded": 300,
        "self_describing": True,
        "against": against,
        "seed": seed if level == "sample" else None,
        "checked": ["sizes", "every code"],
        "unseen": [],
        "seconds": 2.0,
    }
    job = Job(Plan(str(path), ""), report)
    script.jobs.append(job)
    return job


def restore(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    usable: bool = False,
    architecture: str = "auto",
    if_exists: str = "skip",
    threads: int | None = None,
    definitions: Sequence[str | os.PathLike[str]] | None = None,
    low_priority: bool = False,
) -> Job:
    script.restorations.append(dict(locals()))
    _look("restore")
    if script.fail:
        raise script.fail
    report = {
        "schema": "df11.restore/1",
        "status": "done",
        "source": str(path),
        "source_bytes": script.source_bytes * 2 // 3,
        "target": script.target or str(target),
        "target_bytes": script.source_bytes,
        "exact": True,
        "tensors": 12,
        "units": 4,
        "seconds": 2.0,
        "notes": [],
    }
    job = Job(Plan(str(path), str(target)), report)
    script.jobs.append(job)
    return job


def contents(path: str | os.PathLike[str]) -> dict[str, Any]:
    _look("contents")
    if script.unreadable:
        raise script.unreadable
    dtypes = [{"dtype": "BF16", "tensors": 5, "bytes": script.source_bytes}]
    return {
        "schema": "df11.contents/1",
        "file": str(path),
        "bytes": script.source_bytes,
        "tensors": 5,
        "dtypes": dtypes,
        "df11": script.df11,
    }


def inspect(
    path: str | os.PathLike[str], *, architecture: str = "auto", definitions: Sequence[str | os.PathLike[str]] = ()
) -> dict[str, Any]:
    return Plan(str(path), "").report()


def architectures(definitions: Sequence[str | os.PathLike[str]] = ()) -> list[dict[str, Any]]:
    if definitions and script.broken_definitions:
        error = RefusedError("bad.toml has no id")
        error.code = "E_DEFINITION"
        raise error
    rest = {"variant_of": None, "loader": LOADER, "origin": "built in"}
    known = [
        ("Alpha", True, "comfyui"),
        ("Beta", True, "comfyui"),
        ("Refused", False, "comfyui"),
        ("Folder", True, "diffusers"),
    ]
    return [
        {"id": name, "name": f"{name} 1", "layout": layout, "supported": fits, "reason": "", **rest}
        for name, fits, layout in known
    ]


def main() -> int:
    return 0
