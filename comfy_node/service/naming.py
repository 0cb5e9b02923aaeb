"""Titles and descriptions that say when the native part is missing: every front end shows these."""

from __future__ import annotations

from .. import native


def title(name: str) -> str:
    """The display name of a node."""
    return f"{name} (native part missing)" if native.problem() else name


def description(text: str) -> str:
    """The description of a node."""
    found = native.problem()
    return f"{found.sentence} {text}" if found else text
