"""DFloat11 Compress Folder."""

from __future__ import annotations

from typing import Any

from ..host import folders, previews
from ..host.registry import has_node
from ..service import batch, sources
from ..service.naming import description
from ..service.watch import Watch
from . import widgets as w
from .base import Node


class DFloat11CompressFolder(Node):
    """Every BF16 model of a folder becomes a DFloat11 file."""

    TITLE = "DFloat11 Compress Folder"
    DESCRIPTION = description(
        "Compresses every BF16 model in a model folder, one after the other, losslessly. What is done already is "
        "skipped, so a stopped run goes on where it was. Needs no GPU."
    )
    SEARCH_ALIASES = ["DF11", "batch compress", "all models"]
    RETURN_TYPES = ("STRING",)
    RETURN_NAMES = ("report",)
    OUTPUT_TOOLTIPS = ("A table of all files with sizes and time, and why others were left out.",)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return {
            "required": {
                "folder": w.choice(
                    sources.folder_choices(folders),
                    "Where the models lie, subfolders included. The results lie beside them.",
                ),
                "pattern": w.text("*", "Which files: * stands for anything, ? for one letter. Such as flux* or sub/*"),
                "limit": (
                    "INT",
                    {"default": 0, "min": 0, "max": 10_000, "tooltip": "Most models to compress in this run; 0: all."},
                ),
                "continue_on_error": (
                    "BOOLEAN",
                    {
                        "default": True,
                        "tooltip": "Go on with the next model when one fails; the report names both. "
                        "Off: stop at the first failure; finished files stay.",
                    },
                ),
                "header": w.header(),
                "verify": w.verify(),
            },
            "optional": w.for_the_few(),
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, folder: str | None = None) -> bool | str:
        return cls.answer(batch.check(folders, folder))

    # No fingerprint: any file of the folder may have changed, and what is done already takes a moment.
    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        report, picture = batch.run(batch.Request(**widgets), folders, watch, has_node)
        return {"ui": {"text": [report], **previews.show(picture)}, "result": (report,)}
