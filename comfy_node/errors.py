"""The one exception that people see."""

from __future__ import annotations


class NodeError(Exception):
    """A refusal or failure that was foreseen. `str()` says what, where and what to do."""

    def __init__(self, sentence: str, code: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        """The native part's `E_...` code; empty for what the pack itself refuses."""
