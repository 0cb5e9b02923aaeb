"""How fast earlier runs of this session were, for estimates."""

from __future__ import annotations

from typing import Any

# A shorter run says more about its beginning and end than about its rate.
_SHORTEST = 0.5
_rates: list[float] = []


def remember(outcome: dict[str, Any]) -> None:
    """Notes the rate of a compression by its report."""
    if outcome["status"] == "done" and outcome["seconds"] >= _SHORTEST:
        _rates[:] = [outcome["source_bytes"] / outcome["seconds"]]


def last() -> float | None:
    """Source bytes a second of the last compression that ended well; None without one."""
    return _rates[0] if _rates else None
