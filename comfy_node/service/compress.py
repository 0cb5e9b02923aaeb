"""From the widgets of DFloat11 Compress to a file and a report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import native
from ..errors import NodeError
from . import architectures, file_names, placement, report, sources
from .meter import Meter
from .ports import Folders, Monitor

if TYPE_CHECKING:
    from ..native import Job

_POLL_SECONDS = 0.1
# A cancelled job ends within a second. A hung network drive must not block the queue for longer than this.
_CANCEL_SECONDS = 5.0
_MEGABYTE = 1_000_000
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Request:
    """The widgets. 0 leaves a number to the native part."""

    model: str
    architecture: str = architectures.AUTO
    output_name: str = ""
    header: str = "self-describing"
    verify: str = "full"
    if_exists: str = "skip"
    cast: str = "none"
    keep_uncompressed: bool = False
    max_rate: int = 0
    """Megabytes of the source a second."""
    max_memory: int = 0
    """Mebibytes."""
    threads: int = 0


@dataclass(frozen=True)
class Result:
    """What the node gives."""

    model_name: str
    report: str
    target: str


def check(folders: Folders, model: str | None, output_name: str | None) -> str | None:
    """A sentence on why a run cannot start, or None. A value of None comes from a link and is not known yet."""
    found = native.problem()
    if found:
        return found.sentence
    try:
        source = sources.find(folders, model) if model is not None else None
        if output_name is not None:
            file_names.result_name(output_name, source.name if source else "")
    except NodeError as error:
        return str(error)
    return None


def run(request: Request, folders: Folders, monitor: Monitor, has_node: Callable[[str], bool]) -> Result:
    """Compresses and waits for the end. Raises NodeError, or what `monitor` raises when the user stops the run."""
    source = sources.find(folders, request.model)
    file_name = file_names.result_name(request.output_name, source.name)
    place = placement.place(folders, source, file_name, request.if_exists)
    try:
        job = native.start(
            source.path,
            place.target,
            architecture=request.architecture,
            header=request.header,
            verify=request.verify,
            if_exists=request.if_exists,
            cast=request.cast,
            keep_uncompressed=request.keep_uncompressed,
            max_memory=request.max_memory * _MEBIBYTE or None,
            max_rate=request.max_rate * _MEGABYTE or None,
            threads=request.threads or None,
            definitions=architectures.definitions(folders),
            low_priority=True,
        )
        watch(job, monitor)
        outcome = native.result(job)
    except NodeError as error:
        # The name that was picked says more than its path, and leaves room for the reason under the node.
        raise NodeError(str(error).replace(source.path, source.name)) from None
    # `number` may have changed the name, never the folder.
    target = os.path.join(os.path.dirname(place.target), os.path.basename(outcome["target"]))
    total = max(job.snapshot().bytes_total, 1)
    monitor.show(total, total)
    monitor.say(report.summary(outcome))
    name = placement.listed_name(folders, target)
    remarks = [remark for remark in (place.note, placement.shadowing(folders, target)) if remark]
    return Result(name, report.text(outcome, name, remarks, has_node), target)


def watch(job: Job, monitor: Monitor, clock: Callable[[], float] = time.monotonic) -> None:
    """Shows the job until it ends. Whatever is raised here, Stop above all, cancels it first."""
    meter = Meter()
    try:
        while not job.join(_POLL_SECONDS):
            monitor.raise_if_interrupted()
            frame = meter.frame(job.snapshot(), clock())
            if frame:
                monitor.show(frame.value, frame.total)
                monitor.say(frame.text)
    except BaseException:
        job.cancel()
        job.join(_CANCEL_SECONDS)
        monitor.say("Stopped.")
        raise
