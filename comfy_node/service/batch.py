"""From the widgets of DFloat11 Compress Folder to files, one after the other, and a report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import native
from ..errors import NodeError
from . import compress, pace, picture, refusals, report, sources
from .compress import Request as Single
from .meter import Part
from .ports import Folders
from .watch import Watch
from .wording import duration, size

# A DF11 file in the folder is neither a model to compress nor a fault.
_ALREADY_DF11 = "E_ALREADY_DF11"


@dataclass(frozen=True)
class Request:
    """The widgets. 0 leaves a number to the native part."""

    folder: str
    pattern: str = "*"
    limit: int = 0
    """Most files to compress in this run; 0: all."""
    continue_on_error: bool = True
    header: str = "self-describing"
    verify: str = "full"
    cast: str = "none"
    keep_uncompressed: bool = False
    max_rate: int = 0
    max_memory: int = 0
    threads: int = 0

    def single(self, model: str) -> Single:
        """The same for one model."""
        return Single(
            model,
            header=self.header,
            verify=self.verify,
            cast=self.cast,
            keep_uncompressed=self.keep_uncompressed,
            max_rate=self.max_rate,
            max_memory=self.max_memory,
            threads=self.threads,
        )


@dataclass
class _Survey:
    """What the headers say."""

    wanted: list[tuple[str, int]] = field(default_factory=list)
    """Choices with their bytes."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Choices with the reason."""
    df11: int = 0
    later: int = 0
    """Left to another run by the limit."""


@dataclass(frozen=True)
class _Row:
    """One line of the table."""

    name: str
    outcome: dict[str, Any] | None
    """None for a failure."""
    failure: str = ""


def check(folders: Folders, folder: str | None) -> str | None:
    """A sentence on why a run cannot start, or None. A value of None comes from a link and is not known yet."""

    def look() -> None:
        if folder is not None:
            sources.inside(folders, folder, "")

    return refusals.before_a_run(look)


def run(request: Request, folders: Folders, watch: Watch, has_node: Callable[[str], bool]) -> tuple[str, bytes | None]:
    """Compresses one file after the other; the report and a picture.

    Raises NodeError for a failure where the run shall not go on, or what the monitor raises when the user stops it:
    finished files stay in both cases.
    """
    found = native.problem()
    if found:
        raise NodeError(found.sentence)
    survey = _survey(request, folders, watch)
    total = sum(bytes_in for _, bytes_in in survey.wanted)
    watch.begin(f"{len(survey.wanted)} files in {request.folder}, {size(total)} ...")
    rows: list[_Row] = []
    done = 0
    for number, (choice, bytes_in) in enumerate(survey.wanted, 1):
        part = Part(done, bytes_in, total, f"file {number}/{len(survey.wanted)}")
        try:
            prepared = watch.ask(compress.prepare, request.single(choice), folders)
            with sources.called_by_name(prepared.source):
                outcome = watch.result(native.start(prepared.plan), part)
            pace.remember(outcome)
            rows.append(_Row(choice, outcome))
        except NodeError as error:
            if not request.continue_on_error:
                kept = f"Finished before it, and kept: {_finished(rows)}."
                raise NodeError(f"{error} {kept}", error.code) from None
            rows.append(_Row(choice, None, str(error)))
        done += bytes_in
        watch.advance(done, total)
    line = _summary(rows, survey)
    watch.end(line)
    drawn = [(row.name, row.outcome["source_bytes"], row.outcome["target_bytes"]) for row in rows if row.outcome]
    return _text(line, rows, survey, has_node), picture.of_files(drawn)


def _survey(request: Request, folders: Folders, watch: Watch) -> _Survey:
    survey = _Survey()
    new = 0
    for choice in watch.ask(sources.inside, folders, request.folder, request.pattern):
        watch.raise_if_stopped()
        try:
            prepared = watch.ask(compress.prepare, request.single(choice), folders)
        except NodeError as error:
            if error.code == _ALREADY_DF11:
                survey.df11 += 1
            else:
                survey.refused.append((choice, str(error)))
            continue
        # What is there already costs a moment, and does not count.
        if not watch.ask(os.path.exists, prepared.place.target):
            if request.limit and new >= request.limit:
                survey.later += 1
                continue
            new += 1
        survey.wanted.append((choice, int(prepared.plan.report()["source_bytes"])))
    return survey


def _finished(rows: list[_Row]) -> int:
    return sum(row.outcome is not None and row.outcome["status"] == "done" for row in rows)


def _summary(rows: list[_Row], survey: _Survey) -> str:
    there = sum(row.outcome is not None for row in rows) - _finished(rows)
    failed = sum(row.outcome is None for row in rows)
    fresh = [row.outcome for row in rows if row.outcome and row.outcome["status"] == "done"]
    old, new = (sum(outcome[key] for outcome in fresh) for key in ("source_bytes", "target_bytes"))
    parts = [f"{len(fresh)} compressed"]
    if fresh:
        parts[0] += f" ({size(old)} -> {size(new)}, {duration(sum(outcome['seconds'] for outcome in fresh))})"
    counts = ((there, "done before"), (failed, "failed"), (len(survey.refused), "refused"), (survey.later, "left"))
    return ", ".join(parts + [f"{count} {what}" for count, what in counts if count])


def _text(line: str, rows: list[_Row], survey: _Survey, has_node: Callable[[str], bool]) -> str:
    lines = [line]
    if rows:
        lines += ["", "| model | before | after | size | time | result |", "|---|---|---|---|---|---|"]
        lines += [_cells(row) for row in rows]
    failed = [(row.name, row.failure) for row in rows if not row.outcome]
    for title, entries in (("Failed", failed), ("Refused", survey.refused)):
        lines += [f"{title}: {name}: {reason}" for name, reason in entries]
    if survey.df11:
        lines.append(f"Left out: {survey.df11} DFloat11 files")
    if survey.later:
        lines.append(f"Left for another run by the limit: {survey.later}")
    if not rows and not survey.refused and not survey.df11:
        lines.append("No model fits the folder and the pattern.")
    loaders = {
        row.outcome["loader"]["node"]: row.outcome["loader"] for row in rows if row.outcome and row.outcome["loader"]
    }
    for found in loaders.values():
        lines += report.loader(found, has_node)
    return "\n".join(lines)


def _cells(row: _Row) -> str:
    name = row.name.replace("|", "\\|")
    if row.outcome is None:
        return f"| {name} | | | | | failed |"
    outcome = row.outcome
    sizes = f"{size(outcome['source_bytes'])} | {size(outcome['target_bytes'])} | {100 * outcome['ratio']:.1f} %"
    result = "compressed" if outcome["status"] == "done" else "done before"
    return f"| {name} | {sizes} | {duration(outcome['seconds'])} | {result} |"
