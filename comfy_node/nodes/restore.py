"""DFloat11 Restore."""

from __future__ import annotations

from typing import Any

from ..host import folders
from ..service import architectures, restore, sources
from ..service.ledger import Ledger
from ..service.naming import description
from ..service.watch import Watch
from . import widgets as w
from .base import Node

_ledger = Ledger()


class DFloat11Restore(Node):
    """A DF11 file becomes a checkpoint again."""

    TITLE = "DFloat11 Restore"
    DESCRIPTION = description(
        "Makes the original model again from a DFloat11 file: byte for byte where the file tells what it was made "
        "from. The report says what was restored. Needs no GPU."
    )
    SEARCH_ALIASES = ["DF11", "decompress model", "original"]
    # "*" is the one type that goes into a loader's list of names on both sides, server and browser.
    RETURN_TYPES = ("*", "STRING")
    RETURN_NAMES = ("model_name", "report")
    OUTPUT_TOOLTIPS = (
        "Name of the file in a loader's list. Connect it to the model name of a diffusion model loader.",
        "Sizes, time, place, and whether the file is the original byte for byte.",
    )

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return {
            "required": {
                "df11_model": w.choice(
                    sources.df11_choices(folders), "The DFloat11 file. Names with DF11 in them come first."
                ),
                "output_name": w.text("", "Name of the restored file. Empty: the original's name"),
                "if_exists": w.choice(
                    ["skip", "error", "replace", "number"],
                    "skip: does nothing if the file is already the original, and stops if it is another.",
                ),
            },
            "optional": {
                "threads": w.threads(),
                "usable": w.switch(
                    "On: a checkpoint with the same weights under ComfyUI's names, even where the original could be "
                    "made. Off: only where the file does not tell what it was made from."
                ),
                "architecture": w.choice(
                    architectures.choices(folders),
                    "For files that do not tell what they were made from. auto finds it.",
                    advanced=True,
                ),
            },
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, df11_model: str | None = None, output_name: str | None = None) -> bool | str:
        return cls.answer(restore.check(folders, df11_model, output_name))

    @classmethod
    def fingerprint(cls, widgets: dict[str, Any]) -> str:
        request = restore.Request(**widgets)
        return _ledger.fingerprint(request, sources.find(folders, request.df11_model).path)

    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        request = restore.Request(**widgets)
        result = restore.run(request, folders, watch)
        watch.ask(_ledger.remember, request, result.target)
        return {"ui": {"text": [result.report]}, "result": (result.model_name, result.report)}
