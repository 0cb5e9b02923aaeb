"""What says that the native part is missing: titles and descriptions, and a mark for the pack's own script."""

from __future__ import annotations

from .. import native


def title(name: str) -> str:
    """The display name of a node."""
    return f"{name} (native part missing)" if native.problem() else name


def description(text: str) -> str:
    """The description of a node."""
    found = native.problem()
    return f"{found.sentence} {text}" if found else text


def mark() -> dict[str, str]:
    """What a widget's options tell the pack's own script: translations replace titles and descriptions."""
    found = native.problem()
    return {"df11_problem": found.sentence} if found else {}
