"""The server's console."""

from __future__ import annotations

import logging
import sys
from functools import cache


@cache
def hide_tracebacks(kind: type[Exception]) -> None:
    """Keeps the tracebacks of one kind of exception out of the console.

    ComfyUI logs two records for an exception: its sentence, then its traceback. For what was foreseen the sentence is
    enough.
    """

    def is_wanted(record: logging.LogRecord) -> bool:
        # The record is made while the exception is handled, so this is the one that it is about.
        return not (isinstance(sys.exc_info()[1], kind) and record.getMessage().startswith("Traceback"))

    logging.getLogger().addFilter(is_wanted)
