"""Snapshots of a job become a bar and a line of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .wording import duration, size

if TYPE_CHECKING:
    from ..native import Snapshot

# Eight a second: with the last one, which never waits, no second has more than ten.
INTERVAL = 0.125
# The rate is an average over about this many seconds, so that the time left neither jumps nor lags.
_MEMORY = 5.0
# The phases in which bytes flow.
_WORKING = ("reading", "compressing")


@dataclass(frozen=True)
class Frame:
    """What to show: source bytes of all passes, and one line."""

    value: int
    total: int
    text: str


class Meter:
    """Belongs to one job."""

    def __init__(self) -> None:
        self._due = 0.0
        self._value = 0
        self._rate: float | None = None
        self._last = (0, 0.0)

    def frame(self, snapshot: Snapshot, now: float) -> Frame | None:
        """The next frame, or None if it is too early. `now` in seconds of a clock that never goes back."""
        if now < self._due:
            return None
        self._due = now + INTERVAL
        # The total is 0 until known. The bar must not fall back if it grows.
        total = max(snapshot.bytes_total, 1)
        self._value = min(max(self._value, snapshot.bytes_in), total)
        self._measure(snapshot)
        return Frame(self._value, total, self._text(snapshot))

    def _measure(self, snapshot: Snapshot) -> None:
        before, at = self._last
        span = snapshot.elapsed - at
        self._last = (snapshot.bytes_in, snapshot.elapsed)
        if span <= 0 or snapshot.phase not in _WORKING:
            return
        current = (snapshot.bytes_in - before) / span
        weight = min(1.0, span / _MEMORY)
        self._rate = current if self._rate is None else self._rate + weight * (current - self._rate)

    def _text(self, snapshot: Snapshot) -> str:
        if snapshot.bytes_total == 0 or snapshot.phase not in _WORKING:
            return f"{snapshot.phase} ..."
        parts = [f"{100 * self._value / snapshot.bytes_total:.0f} %"]
        if self._rate:
            left = (snapshot.bytes_total - self._value) / self._rate
            parts += [f"{size(self._rate)}/s", f"{duration(left)} left"]
        parts += [f"unit {snapshot.unit}/{snapshot.units}", f"{size(snapshot.bytes_out)} written"]
        return ", ".join(parts)
