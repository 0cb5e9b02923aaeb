"""DFloat11 Compress."""

from __future__ import annotations

from typing import Any

from ..host import folders, previews
from ..host.registry import has_node
from ..service import architectures, compress, sources
from ..service.ledger import Ledger
from ..service.naming import description
from ..service.watch import Watch
from . import widgets as w
from .base import Node

_ledger = Ledger()


class DFloat11Compress(Node):
    """One BF16 model becomes one DFloat11 file."""

    TITLE = "DFloat11 Compress"
    DESCRIPTION = description(
        "Compresses a BF16 model by about 30 %, losslessly: the file decodes to the same bits. Needs no GPU. "
        "The result lies next to the source; load it with the DFloat11 loader that the report names."
    )
    SEARCH_ALIASES = ["DF11", "compress model", "lossless"]
    # "*" is the one type that goes into a loader's list of names on both sides, server and browser.
    RETURN_TYPES = ("*", "STRING")
    RETURN_NAMES = ("model_name", "report")
    OUTPUT_TOOLTIPS = (
        "Name of the file in a loader's list. Connect it to the model name of a DFloat11 loader.",
        "Sizes, time, place, and which loader the file needs.",
    )

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return {
            "required": {
                "model": w.choice(
                    sources.choices(folders),
                    "A BF16 model. Of one under checkpoints/ only the diffusion model is compressed; "
                    "the result goes to diffusion_models.",
                ),
                "architecture": w.choice(
                    architectures.choices(folders), "auto finds it from the file. A wrong choice is refused."
                ),
                "output_name": w.text("", "Name of the new file. Empty: <name of the model>-DF11.safetensors"),
                "header": w.header(),
                "verify": w.verify(),
                "if_exists": w.if_exists(),
            },
            "optional": w.for_the_few(),
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, model: str | None = None, output_name: str | None = None) -> bool | str:
        # ComfyUI drops its own checks for the inputs named here and shows the sentence once for each: so only two.
        return cls.answer(compress.check(folders, model, output_name))

    @classmethod
    def fingerprint(cls, widgets: dict[str, Any]) -> str:
        request = compress.Request(**widgets)
        return _ledger.fingerprint(request, sources.find(folders, request.model).path)

    def work(self, watch: Watch, **widgets: Any) -> dict[str, Any]:
        request = compress.Request(**widgets)
        result = compress.run(request, folders, watch, has_node)
        watch.ask(_ledger.remember, request, result.target)
        ui = {"text": [result.report], **previews.show(result.picture)}
        return {"ui": ui, "result": (result.model_name, result.report)}
