"""From the widgets of DFloat11 Restore to a file and a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import native
from . import architectures, file_names, placement, refusals, sources
from .ports import Folders
from .watch import Watch
from .wording import duration, size


@dataclass(frozen=True)
class Request:
    """The widgets."""

    df11_model: str
    output_name: str = ""
    if_exists: str = "skip"
    usable: bool = False
    architecture: str = architectures.AUTO
    threads: int = 0
    """0: all cores."""


@dataclass(frozen=True)
class Result:
    """What the node gives."""

    model_name: str
    report: str
    target: str


def check(folders: Folders, df11_model: str | None, output_name: str | None) -> str | None:
    """A sentence on why a run cannot start, or None. A value of None comes from a link and is not known yet."""

    def look() -> None:
        if df11_model is not None:
            sources.find(folders, df11_model)
        if output_name is not None:
            file_names.file_name(output_name, "")

    return refusals.before_a_run(look)


def run(request: Request, folders: Folders, watch: Watch) -> Result:
    """Restores and waits for the end. Raises NodeError, or what the monitor raises when the user stops the run."""
    model = watch.ask(sources.find, folders, request.df11_model)
    with sources.called_by_name(model):
        name = file_names.file_name(request.output_name, watch.ask(_default_name, model.path, request.usable))
        place = watch.ask(placement.place, folders, model, name, request.if_exists)
        watch.begin(f"{model.name} ...")
        job = watch.ask(
            native.restore,
            model.path,
            place.target,
            usable=request.usable,
            architecture=request.architecture,
            definitions=architectures.definitions(folders),
            if_exists=request.if_exists,
            threads=request.threads or None,
            low_priority=True,
        )
        outcome = watch.result(job)
    watch.end(_summary(outcome))
    target, name, remarks = watch.ask(placement.written, folders, place, outcome["target"])
    return Result(name, _text(outcome, model.name, target, name, remarks), target)


def _default_name(path: str, usable: bool) -> str:
    """The name that the native part gives to a restored file. What is no DF11 file has none; restoring says so."""
    found = native.contents(path)["df11"]
    return str(found["usable_name" if usable else "restored_name"]) if found else "restored.safetensors"


def _summary(outcome: dict[str, Any]) -> str:
    sizes = f"{size(outcome['source_bytes'])} -> {size(outcome['target_bytes'])}"
    if outcome["status"] == "already-done":
        return f"Already done: {sizes}, checked in {duration(outcome['seconds'])}"
    return f"Done: {sizes} in {duration(outcome['seconds'])}"


def _text(outcome: dict[str, Any], df11_name: str, target: str, name: str, remarks: list[str]) -> str:
    exact = "the file that was compressed, byte for byte"
    usable = "a checkpoint with the same weights, not the file that was compressed"
    lines = [
        _summary(outcome),
        f"Restored: {exact if outcome['exact'] else usable}",
        f"From: {df11_name}",
        f"Written to: {target}",
        f"Name in the loader's list: {name}",
        f"Tensors: {outcome['tensors']}. Compression units: {outcome['units']}",
    ]
    return "\n".join(lines + [f"Note: {note}" for note in [*remarks, *outcome["notes"]]])
