"""What earlier runs left on disk: tells the host's cache when a node has to run again."""

from __future__ import annotations

import os
from collections import Counter

from .compress import Request


class Ledger:
    """Remembers the file that each request gave.

    A fingerprint of source and target alone would change with the very file that the first run writes: the second
    run would reload the model for nothing.
    """

    def __init__(self) -> None:
        self._left: dict[Request, tuple[str, str]] = {}
        self._losses: Counter[Request] = Counter()

    def remember(self, request: Request, target: str) -> None:
        """Notes the target as it is now."""
        self._left[request] = (target, _state(target))

    def fingerprint(self, request: Request, source: str) -> str:
        """Equal to the one before as long as the source is the same and the target is as the last run left it."""
        if request in self._left:
            target, state = self._left[request]
            if _state(target) != state:
                del self._left[request]
                self._losses[request] += 1
        return f"{_state(source)}, {self._losses[request]} lost"


def _state(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "absent"
    return f"{status.st_size} bytes of {status.st_mtime_ns}"
