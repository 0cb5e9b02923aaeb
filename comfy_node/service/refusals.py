"""What can be said before a run starts."""

from __future__ import annotations

from collections.abc import Callable

from .. import native
from ..errors import NodeError


def before_a_run(look: Callable[[], object]) -> str | None:
    """A sentence on why a run cannot start: of the native part, or of what `look` refuses. None where it can."""
    found = native.problem()
    if found:
        return found.sentence
    try:
        look()
    except NodeError as error:
        return str(error)
    return None
