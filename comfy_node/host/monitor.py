"""The progress bar, the line of text under a node and the Stop button."""

from __future__ import annotations

import comfy.model_management
import comfy.utils
from server import PromptServer


class Monitor:
    """Belongs to one run of one node. Only for the thread that runs the node: elsewhere Stop would be lost."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._bar = comfy.utils.ProgressBar(1)

    def raise_if_interrupted(self) -> None:
        """Raises ComfyUI's own exception once Stop was pressed."""
        comfy.model_management.throw_exception_if_processing_interrupted()

    def show(self, value: int, total: int) -> None:
        """Moves the bar. Raises like `raise_if_interrupted`."""
        self._bar.update_absolute(value, total)

    def say(self, text: str) -> None:
        """Puts one line under the node, in the browser that queued it."""
        server = getattr(PromptServer, "instance", None)
        if server is not None:
            server.send_progress_text(text, self._node_id, server.client_id)


def tell_refusal(sentence: str) -> None:
    """Tells every open page why a run was refused; the one that asked for it shows the sentence.

    ComfyUI's own page has it behind a click, and does not say to its extensions that a run was refused.
    """
    server = getattr(PromptServer, "instance", None)
    if server is not None:
        server.send_sync("df11.refused", {"sentence": sentence})
