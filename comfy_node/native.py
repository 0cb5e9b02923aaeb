"""The only importer of `df11_native`. Importing this module never fails, whatever is installed.

`problem()` says what is wrong with the native part, if anything. The other functions call it; they raise
`NodeError` with one sentence for everything that it refuses.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import PACK_FOLDER
from .errors import NodeError

if TYPE_CHECKING:
    from df11_native import Job as Job
    from df11_native import Plan as Plan
    from df11_native import Snapshot as Snapshot

PROTOCOL = 3
"""The interface number of `df11_native` that this pack speaks."""


@dataclass(frozen=True)
class Problem:
    """Why there is no native part."""

    kind: str
    """`missing`, `no-build`, `protocol` or `load-error`."""
    sentence: str
    """What to do about it."""


@lru_cache(maxsize=1)
def problem() -> Problem | None:
    """What keeps the native part from being used; None when all is well. Looks once."""
    try:
        import df11_native
    except ModuleNotFoundError as error:
        if error.name == "df11_native":
            return Problem("missing", f"The native part of DFloat11 Compress is not installed: {_remedy()}.")
        return _load_error(error)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return _load_error(error)
    protocol = getattr(df11_native, "PROTOCOL", None)
    if protocol is None or not getattr(df11_native, "NATIVE", True):
        reason: str = getattr(df11_native, "REASON", "")
        if reason and not (PACK_FOLDER / "install.py").is_file():
            return Problem("no-build", reason)
        place = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
        return Problem("no-build", f"DFloat11 Compress has no ready-made native part for {place}: {_remedy()}.")
    if protocol != PROTOCOL:
        numbers = f"(interface {protocol} instead of {PROTOCOL})"
        return Problem("protocol", f"The native part is of another version than the node pack {numbers}: {_remedy()}.")
    return None


def _load_error(error: BaseException) -> Problem:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return Problem("load-error", f"The native part of DFloat11 Compress does not load ({reason}): {_remedy()}.")


def _remedy() -> str:
    script = PACK_FOLDER / "install.py"
    if script.is_file():
        return f'run "{sys.executable}" "{script}" and restart ComfyUI'
    return f'run "{sys.executable}" -m pip install --upgrade dfloat11-compress and restart ComfyUI'


def architectures(definitions: Sequence[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """The known architectures, as `df11_native.architectures` lists them."""
    with _one_sentence():
        import df11_native

        return df11_native.architectures(definitions)


def contents(path: str) -> dict[str, Any]:
    """What a safetensors file holds, as `df11_native.contents` tells it."""
    with _one_sentence():
        import df11_native

        return df11_native.contents(path)


def plan(source: str, target: str, **options: Any) -> Plan:
    """Plans a compression from the source's header. `options` are those of `df11_native.plan`."""
    with _one_sentence():
        import df11_native

        return df11_native.plan(source, target, **options)


def estimate(plan: Plan) -> dict[str, Any]:
    """Time and memory that a plan will need."""
    with _one_sentence():
        return plan.estimate()


def start(plan: Plan) -> Job:
    """Starts a planned compression."""
    with _one_sentence():
        import df11_native

        return df11_native.start(plan)


def verify(path: str, **options: Any) -> Job:
    """Starts the check of a DF11 file. `options` are those of `df11_native.verify`."""
    with _one_sentence():
        import df11_native

        return df11_native.verify(path, **options)


def restore(path: str, target: str, **options: Any) -> Job:
    """Starts the restoration of a DF11 file. `options` are those of `df11_native.restore`."""
    with _one_sentence():
        import df11_native

        return df11_native.restore(path, target, **options)


def result(job: Job) -> dict[str, Any]:
    """The report of a job that has ended."""
    with _one_sentence():
        return job.result()


@contextmanager
def _one_sentence() -> Iterator[None]:
    found = problem()
    if found:
        raise NodeError(found.sentence)
    import df11_native

    try:
        yield
    except df11_native.Df11Error as error:
        raise NodeError(f"{error} [{error.code}]", error.code) from None
    except BaseException as error:
        # A Rust panic arrives as a BaseException of its own and would end ComfyUI's worker thread.
        if type(error).__name__ != "PanicException":
            raise
        raise NodeError(f"The native part failed, which is a bug: {error}. Please report it.") from error
