"""DFloat11 Verify."""

from __future__ import annotations

from typing import Any

from ..host import folders
from ..service import sources, verify
from ..service.naming import description
from ..service.watch import Watch
from . import widgets as w
from .base import Node


class DFloat11Verify(Node):
    """Whether a DF11 file is sound."""

    TITLE = "DFloat11 Verify"
    DESCRIPTION = description(
        "Checks a DFloat11 file, whoever wrote it: that its parts fit together and decode, "
        "and with its source that every weight is the same bit for bit. Needs no GPU."
    )
    SEARCH_ALIASES = ["DF11", "check model", "integrity", "bit-exact"]
    RETURN_TYPES = ("STRING",)
    RETURN_NAMES = ("report",)
    OUTPUT_TOOLTIPS = ("What was checked, and what this level cannot see. A file that is not sound stops the run.",)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return {
            "required": {
                "df11_model": w.choice(
                    sources.df11_choices(folders), "The DFloat11 file. Names with DF11 in them come first."
                ),
                "source": w.choice(
                    [sources.NONE, *sources.choices(folders)],
                    "The model that the file was made from: then every weight is compared with it. none: without it.",
                ),
                "level": w.choice(
                    ["full", "sample", "hash", "structure"],
                    "full: decodes everything. sample: decodes some of each unit. hash: compares with the hashes in "
                    "the file. structure: sizes and tables only, in a moment.",
                ),
            },
            "optional": {
                "samples": w.number(200, 1_000_000, "Kernel chunks to decode at the level sample, besides fixed ones."),
                "sample_seed": w.number(0, (1 << 31) - 1, "Repeats the choice of an earlier report; 0: a new one."),
                "threads": w.threads(),
            },
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, df11_model: str | None = None, source: str | None = None) -> bool | str:
        return cls.answer(verify.check(folders, df11_model, source))

    @classmethod
    def fingerprint(cls, widgets: dict[str, Any]) -> str:
        return verify.fingerprint(verify.Request(**widgets), folders)

    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        report = verify.run(verify.Request(**widgets), folders, watch)
        return {"ui": {"text": [report]}, "result": (report,)}
