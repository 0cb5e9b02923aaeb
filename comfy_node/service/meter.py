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
_WORKING = ("reading", "compressing", "restoring")


@dataclass(frozen=True)
class Frame:
    """What to show: bytes of all passes, and one line."""

    value: int
    total: int
    text: str


@dataclass(frozen=True)
class Part:
    """The place of one job in a run of several. In bytes of the sources."""

    start: int
    """Bytes of the jobs before."""
    size: int
    total: int
    label: str
    """What the line calls the job."""


class Meter:
    """Belongs to one run."""

    def __init__(self) -> None:
        self._due = 0.0
        self._value = 0
        self._rate: float | None = None
        self._last: tuple[int, float] | None = None

    def frame(self, snapshot: Snapshot, now: float, part: Part | None = None) -> Frame | None:
        """The next frame, or None if it is too early. `now` in seconds of a clock that never goes back."""
        if now < self._due:
            return None
        self._due = now + INTERVAL
        # The total is 0 until known. The bar must not fall back if it grows.
        total = max(part.total if part else snapshot.bytes_total, 1)
        done = snapshot.bytes_in
        if part:
            done = part.start + part.size * done // max(snapshot.bytes_total, 1)
        self._value = min(max(self._value, done), total)
        self._measure(done, now, snapshot.phase in _WORKING)
        return Frame(self._value, total, self._text(snapshot, total, part))

    def _measure(self, done: int, now: float, working: bool) -> None:
        last, self._last = self._last, (done, now)
        if last is None or not working or now <= last[1] or done < last[0]:
            return
        span = now - last[1]
        current = (done - last[0]) / span
        weight = min(1.0, span / _MEMORY)
        self._rate = current if self._rate is None else self._rate + weight * (current - self._rate)

    def _text(self, snapshot: Snapshot, total: int, part: Part | None) -> str:
        label = [part.label] if part else []
        if snapshot.bytes_total == 0 or snapshot.phase not in _WORKING:
            return ", ".join([*label, f"{snapshot.phase} ..."])
        parts = [f"{100 * self._value / total:.0f} %"]
        if self._rate:
            parts += [f"{size(self._rate)}/s", f"{duration((total - self._value) / self._rate)} left"]
        parts += [*label, f"unit {snapshot.unit}/{snapshot.units}"]
        if snapshot.bytes_out:
            parts.append(f"{size(snapshot.bytes_out)} written")
        return ", ".join(parts)
