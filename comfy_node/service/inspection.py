"""What a file is and what compressing it would give, from its header alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import native
from ..errors import NodeError
from . import architectures, compress, pace, report, sources
from .ports import Folders
from .wording import duration, size


@dataclass(frozen=True)
class Request:
    """The widgets."""

    model: str
    architecture: str = architectures.AUTO
    cast: str = "none"
    keep_uncompressed: bool = False


def check(folders: Folders, model: str | None) -> str | None:
    """A sentence on why a look is impossible, or None. A value of None comes from a link and is not known yet."""
    return compress.check(folders, model, None)


def run(request: Request, folders: Folders, has_node: Callable[[str], bool]) -> tuple[str, str]:
    """One line, and the whole report; a refusal is one too. Raises NodeError where nothing can be looked at."""
    problem = native.problem()
    if problem:
        raise NodeError(problem.sentence)
    source = sources.find(folders, request.model)
    try:
        with sources.called_by_name(source):
            found = native.contents(source.path)
    except NodeError as error:
        line, lines = _refused(error)
        return line, "\n".join([line, f"File: {source.name}", *lines])
    about = [
        f"File: {source.name}, {size(found['bytes'])}, {found['tensors']} tensors",
        "Tensors by type: " + ", ".join(_share(share) for share in found["dtypes"]),
    ]
    if found["df11"]:
        line, lines = _df11(found["bytes"], found["df11"])
    else:
        line, lines = _plan(request, folders, has_node)
    return line, "\n".join([line, *about, *lines])


def _share(share: dict[str, Any]) -> str:
    return f"{share['dtype']} {share['tensors']} ({size(share['bytes'])})"


def _df11(total: int, df11: dict[str, Any]) -> tuple[str, list[str]]:
    units, bits = df11["units"], df11["bits_per_weight"]
    lines = [
        f"Compression units: {len(units)}, {df11['weights'] / 1e6:.1f} million weights, {bits:.2f} bits each",
        f"Not compressed: {size(df11['plain_bytes'])}",
    ]
    if df11["source_name"]:
        lines.append(f"Made from: {df11['source_name']}, {size(df11['source_bytes'])}, by {df11['tool']}")
        lines.append(f"Architecture: {df11['architecture']}")
    else:
        lines.append("Made from: unknown, since the file does not tell")
    reason = df11["not_exact"]
    lines.append(f"Exactly restorable: {f'no, {reason}' if reason else 'yes, byte for byte with DFloat11 Restore'}")
    if reason:
        switch = " with 'usable' on" if df11["source_name"] else ""
        lines.append(
            f"Usable checkpoint: DFloat11 Restore{switch} makes one with the same weights, if the architecture is known"
        )
    return f"Already a DFloat11 file: {size(total)}, {bits:.2f} bits per weight", lines


def _plan(request: Request, folders: Folders, has_node: Callable[[str], bool]) -> tuple[str, list[str]]:
    wanted = compress.Request(
        request.model,
        architecture=request.architecture,
        cast=request.cast,
        keep_uncompressed=request.keep_uncompressed,
    )
    try:
        prepared = compress.prepare(wanted, folders)
        expected = native.estimate(prepared.plan)
    except NodeError as error:
        return _refused(error)
    plan = prepared.plan.report()
    old, new, free = plan["source_bytes"], plan["predicted_bytes"], plan["free_bytes"]
    saving = f"{size(old)} -> about {size(new)} ({100 * (1 - new / max(old, 1)):.0f} % smaller)"
    weights = sum(unit["weights"] for unit in plan["units"]) / 1e6
    lines = [
        f"Architecture: {plan['architecture_name']} ({plan['architecture']}). Definition: {plan['definition']}",
        f"Compression units: {len(plan['units'])}, {weights:.1f} million weights",
        f"Copied as it is: {size(plan['passthrough_bytes'])}. Left out: {len(plan['dropped'])} tensors",
        f"Size: {saving}. Published models of these architectures give 68 to 71 % of their BF16 weights",
        f"Time: {_time(expected, old)}",
        f"Memory: at most {size(expected['memory_budget'])}, whatever the model's size",
        f"Would be written to: {prepared.place.target}",
        f"Free space there: {'unknown' if free is None else size(free)}",
        *_disk(plan),
        *report.loader(plan["loader"], has_node),
    ]
    notes = [note for note in (prepared.place.note, *plan["notes"]) if note]
    if os.path.exists(prepared.place.target):
        notes.append("the file exists; Compress looks whether it is this result, and never overwrites another unasked")
    lines += [f"Note: {note}" for note in notes]
    if free is not None and free < new:
        return f"Not enough space: about {size(new)} needed, {size(free)} free", lines
    return f"Can be compressed: {saving}", lines


def _disk(plan: dict[str, Any]) -> list[str]:
    """What the system says of it; how fast it is, only the run finds out."""
    if not (plan["same_disk"] and plan["rotating_disk"]):
        return []
    return [
        "Disk: one for model and result, and the system calls it a rotating one. Reading and writing will take turns "
        "if it proves slow; with the result on another disk it goes faster"
    ]


def _refused(error: NodeError) -> tuple[str, list[str]]:
    reasons = str(error).splitlines()
    return f"Would be refused: {len(reasons)} {'reason' if len(reasons) == 1 else 'reasons'}", reasons


def _time(expected: dict[str, Any], source_bytes: int) -> str:
    """An estimate says its basis: the processor is measured, a disk would take too long."""
    computing = expected["compress_seconds"] + expected["verify_seconds"]
    transfer = f"reading {size(expected['bytes_to_read'])} and writing {size(expected['bytes_to_write'])}"
    text = (
        f"at least {duration(computing)} for computing (measured just now with {expected['threads']} threads), "
        f"or as long as the disk takes for {transfer}"
    )
    rate = pace.last()
    return f"{text}. The last run here had {size(rate)}/s: {duration(source_bytes / rate)}" if rate else text
