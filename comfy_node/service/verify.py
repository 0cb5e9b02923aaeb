"""From the widgets of DFloat11 Verify to a report."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from .. import native
from . import architectures, ledger, refusals, sources
from .ports import Folders
from .sources import NONE
from .watch import Watch
from .wording import duration, size

# Seeds that a widget can hold: a browser counts to 2**53, and this one can also be typed.
_SEEDS = 1 << 31


@dataclass(frozen=True)
class Request:
    """The widgets."""

    df11_model: str
    source: str = NONE
    level: str = "full"
    samples: int = 200
    sample_seed: int = 0
    """0: a new choice each time."""
    threads: int = 0
    """0: all cores."""


def check(folders: Folders, df11_model: str | None, source: str | None) -> str | None:
    """A sentence on why a run cannot start, or None. A value of None comes from a link and is not known yet."""

    def look() -> None:
        for choice in (df11_model, None if source == NONE else source):
            if choice is not None:
                sources.find(folders, choice)

    return refusals.before_a_run(look)


def fingerprint(request: Request, folders: Folders) -> str:
    """Equal to the one before as long as both files are as they were. Raises NodeError."""
    return ", ".join(ledger.state(file.path) for file in _files(request, folders))


def run(request: Request, folders: Folders, watch: Watch) -> str:
    """Checks and waits for the end. Raises NodeError, also for a file that is not sound, or what the monitor raises."""
    model, *source = watch.ask(_files, request, folders)
    watch.begin(f"{model.name}, level {request.level} ...")
    with sources.called_by_name(model, *source):
        job = watch.ask(
            native.verify,
            model.path,
            level=request.level,
            against=source[0].path if source else None,
            samples=request.samples,
            seed=request.sample_seed or random.randrange(1, _SEEDS),
            threads=request.threads or None,
            definitions=architectures.definitions(folders),
            low_priority=True,
        )
        outcome = watch.result(job)
    watch.end(_summary(outcome))
    return _text(outcome, model.name, source[0].name if source else "")


def _files(request: Request, folders: Folders) -> list[sources.Source]:
    """The DF11 file, then its source if one was picked."""
    choices = [request.df11_model, *([request.source] if request.source != NONE else [])]
    return [sources.find(folders, choice) for choice in choices]


def _summary(outcome: dict[str, Any]) -> str:
    return f"Sound at level {outcome['level']}: {size(outcome['bytes'])} in {duration(outcome['seconds'])}"


def _text(outcome: dict[str, Any], name: str, source: str) -> str:
    chunks = f"{outcome['chunks_decoded']} of {outcome['chunks']} kernel chunks decoded"
    lines = [
        _summary(outcome),
        f"File: {name}",
        f"Compared with: {source or 'no source'}",
        f"Compression units: {outcome['units']}, {outcome['weights'] / 1e6:.1f} million weights, {chunks}",
        *(f"Checked: {what}" for what in outcome["checked"]),
        *(f"Not seen at this level: {what}" for what in outcome["unseen"]),
    ]
    if outcome["seed"] is not None:
        lines.append(f"The same choice again: sample_seed {outcome['seed']}")
    return "\n".join(lines)
