"""DFloat11 Inspect."""

from __future__ import annotations

from typing import Any

from ..host import folders
from ..host.registry import has_node
from ..service import architectures, inspection, sources
from ..service.naming import description
from ..service.watch import Watch
from . import widgets as w
from .base import Node


class DFloat11Inspect(Node):
    """What a model is, before anything is written."""

    TITLE = "DFloat11 Inspect"
    DESCRIPTION = description(
        "Shows in a moment what a model is and what compressing it would give: architecture, size, time, memory, "
        "space, the loader that the result needs, every reason against it. Of a DFloat11 file it shows what it holds."
    )
    SEARCH_ALIASES = ["DF11", "model info", "dry run"]
    RETURN_TYPES = ("STRING",)
    RETURN_NAMES = ("report",)
    OUTPUT_TOOLTIPS = ("What the file is, what it would become, and every reason against it.",)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return {
            "required": {"model": w.choice(sources.choices(folders), "The model to look at. Only its header is read.")},
            "optional": {
                "architecture": w.choice(architectures.choices(folders), "auto finds it from the file.", advanced=True),
                "cast": w.cast(),
                "keep_uncompressed": w.keep_uncompressed(),
            },
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, model: str | None = None) -> bool | str:
        return cls.answer(inspection.check(folders, model))

    # No fingerprint: space, folders and loaders change too, and a look takes a moment.
    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        line, report = watch.ask(inspection.run, inspection.Request(**widgets), folders, has_node)
        watch.end(line)
        return {"ui": {"text": [report]}, "result": (report,)}
