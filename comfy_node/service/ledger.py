"""What earlier runs left on disk: tells the host's cache when a node has to run again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable


class Ledger:
    """Remembers the file that each request gave.

    A fingerprint of source and target alone would change with the very file that the first run writes: the second
    run would reload the model for nothing.
    """

    def __init__(self) -> None:
        self._left: dict[Hashable, tuple[str, str]] = {}
        self._losses: Counter[Hashable] = Counter()

    def remember(self, request: Hashable, target: str) -> None:
        """Notes the target as it is now."""
        self._left[request] = (target, state(target))

    def fingerprint(self, request: Hashable, source: str) -> str:
        """Equal to the one before as long as the source is the same and the target is as the last run left it."""
        if request in self._left:
            target, left = self._left[request]
            if state(target) != left:
                del self._left[request]
                self._losses[request] += 1
        return f"{state(source)}, {self._losses[request]} lost"


def state(path: str) -> str:
    """Size and modification time of a file in words."""
    try:
        status = os.stat(path)
    except OSError:
        return "absent"
    return f"{status.st_size} bytes of {status.st_mtime_ns}"
