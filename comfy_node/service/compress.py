"""From the widgets of DFloat11 Compress to a file and a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import native
from ..errors import NodeError
from . import architectures, file_names, pace, picture, placement, refusals, report, sources
from .placement import Placement
from .ports import Folders
from .sources import Source
from .watch import Watch
from .wording import size

if TYPE_CHECKING:
    from ..native import Plan

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
class Prepared:
    """A compression that the source's header allows."""

    source: Source
    place: Placement
    plan: Plan


@dataclass(frozen=True)
class Result:
    """What the node gives."""

    model_name: str
    report: str
    target: str
    picture: bytes | None
    """PNG."""


def check(folders: Folders, model: str | None, output_name: str | None) -> str | None:
    """A sentence on why a run cannot start, or None. A value of None comes from a link and is not known yet."""

    def look() -> None:
        source = sources.find(folders, model) if model is not None else None
        if output_name is not None:
            file_names.result_name(output_name, source.name if source else "")

    return refusals.before_a_run(look)


def prepare(request: Request, folders: Folders) -> Prepared:
    """Finds the source and the place of the result, and plans. Raises NodeError with every reason against it."""
    source = sources.find(folders, request.model)
    file_name = file_names.result_name(request.output_name, source.name)
    place = placement.place(folders, source, file_name, request.if_exists)
    with sources.called_by_name(source):
        plan = native.plan(
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
    return Prepared(source, place, plan)


def run(request: Request, folders: Folders, watch: Watch, has_node: Callable[[str], bool]) -> Result:
    """Compresses and waits for the end. Raises NodeError, or what the monitor raises when the user stops the run."""
    prepared = watch.ask(prepare, request, folders)
    source = prepared.source
    watch.begin(f"{source.name}, {size(prepared.plan.report()['source_bytes'])} ...")
    with sources.called_by_name(source):
        outcome = watch.result(native.start(prepared.plan))
    watch.end(report.summary(outcome))
    pace.remember(outcome)
    target, name, remarks = watch.ask(placement.written, folders, prepared.place, outcome["target"])
    text = report.text(outcome, name, remarks, has_node)
    return Result(name, text, target, picture.of_units(outcome, watch.ask(units, outcome, target)))


def units(outcome: dict[str, Any], target: str) -> list[dict[str, Any]]:
    """The units of a result; of one that was there already, those that its header shows."""
    if outcome["units"]:
        return list(outcome["units"])
    try:
        found = native.contents(target)["df11"]
    except NodeError:
        return []
    return list(found["units"]) if found else []
