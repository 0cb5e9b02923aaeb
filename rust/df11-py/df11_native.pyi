"""Native half of DFloat11 Compress: plans, runs and watches compressions, checks and restorations."""

import os
from collections.abc import Sequence
from typing import Any, final

__version__: str
PROTOCOL: int
"""Number of this interface; the node pack refuses another one."""

class Df11Error(Exception):
    """A refusal or failure with a stable code. `str()` says what, where and what to do, one line for each fault found."""

    code: str
    """Stable `E_...` code."""
    hint: str
    """What to do about it, as in `str()`; may be empty."""
    path: str | None
    unit: str | None
    tensor: str | None
    index: int | None

class RefusedError(Df11Error):
    """The input is not taken, and nothing was left."""

class VerificationError(Df11Error):
    """A file does not hold what it should. One that was being written was not committed."""

class SpaceError(Df11Error):
    """Not enough disk space or memory."""

class TargetExistsError(Df11Error):
    """The target exists and is not this result, or another run is writing it."""

class CancelledError(Df11Error):
    """The job was cancelled; nothing was left."""

@final
class Snapshot:
    """State of a job at one moment. Sizes in bytes, times in seconds."""

    phase: str
    """`checking`, `reading`, `compressing`, `restoring`, `finishing` or `done`."""
    bytes_in: int
    """Bytes finished: of the source over all passes, of the file that is checked, of the one that is restored."""
    bytes_total: int
    """Bytes to finish; 0 until known."""
    bytes_out: int
    """Bytes written so far."""
    unit: int
    """Compression units finished."""
    units: int
    """Compression units to finish; 0 until known."""
    unit_name: str
    """The unit in work; empty between units, and where only a compression's plan would know it."""
    elapsed: float

@final
class Plan:
    """What a compression would do, from the header alone. It is started once."""

    source: str
    target: str
    architecture: str
    units: int
    def report(self) -> dict[str, Any]:
        """The plan as `df11 inspect --json` prints it (schema `df11.plan/1`)."""
    def estimate(self) -> dict[str, Any]:
        """Time and memory to expect (schema `df11.expectation/1`), before the plan is started. Measures the processor for about two tenths of a
        second, and no disk."""

@final
class Job:
    """Running work. Every method may be called from any thread and releases the GIL."""

    def snapshot(self) -> Snapshot: ...
    def cancel(self) -> None:
        """Asks the job to stop; it ends within a second and leaves no file."""
    def join(self, timeout: float | None = None) -> bool:
        """Waits up to `timeout` seconds (for ever if None); True once the job has ended."""
    def result(self) -> dict[str, Any]:
        """The report of a job that ended well: `df11.report/1` of a compression, `df11.verify/1`, `df11.restore/1`. Raises its error otherwise.
        Waits for the end."""

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
    definitions: Sequence[str | os.PathLike[str]] | None = None,
    low_priority: bool = False,
) -> Plan:
    """Reads the source's header and decides everything that can be decided before the first write.

    `target` defaults to `<stem>-DF11.safetensors` beside the source. `max_memory` in bytes, `max_rate` in bytes of the source a
    second. `definitions` are folders of architecture files, later ones win over earlier ones and over the built-in ones.
    `low_priority` lets the worker threads give way to the host.
    Raises RefusedError with every reason that the header shows, or another Df11Error for the request itself.
    """

def start(plan: Plan) -> Job:
    """Starts the plan in threads of its own and returns at once."""

def verify(
    path: str | os.PathLike[str],
    *,
    level: str = "full",
    against: str | os.PathLike[str] | None = None,
    architecture: str = "auto",
    samples: int = 200,
    seed: int | None = None,
    threads: int | None = None,
    definitions: Sequence[str | os.PathLike[str]] | None = None,
    low_priority: bool = False,
) -> Job:
    """Starts a check of a DF11 file, whoever wrote it.

    `level` is `structure`, `hash`, `sample` or `full`. `against` is the checkpoint that it was made from; `architecture` and `definitions` help
    to read that. `samples` kernel chunks are decoded at the level `sample`; `seed` repeats an earlier choice of them.
    Raises Df11Error at once for what the header shows; the job's result raises VerificationError for the rest.
    """

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
    """Starts making a checkpoint from a DF11 file: the very source where the file describes it and `usable` is not asked for.

    `target` defaults to the source's name, beside the file. `architecture` and `definitions` serve where the file does not describe itself. Raises Df11Error at once for what the header shows.
    """

def inspect(path: str | os.PathLike[str], *, architecture: str = "auto", definitions: Sequence[str | os.PathLike[str]] | None = None) -> dict[str, Any]:
    """What a file is and what compressing it would give, from its header alone (schema `df11.plan/1`)."""

def contents(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a safetensors file holds, from its header alone (schema `df11.contents/1`): dtypes, and of a DF11 file its units and origin."""

def architectures(definitions: Sequence[str | os.PathLike[str]] | None = None) -> list[dict[str, Any]]:
    """The known architectures: `id`, `name`, `layout`, `variant_of`, `supported`, `reason`, `loader` (dict), `origin` (file)."""

def main() -> int:
    """The `df11` command on `sys.argv`; returns its exit code."""
