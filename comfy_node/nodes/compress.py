"""DFloat11 Compress."""

from __future__ import annotations

from typing import Any

from ..errors import NodeError
from ..host import folders
from ..host.monitor import Monitor
from ..host.registry import has_node
from ..service import architectures, compress, sources
from ..service.ledger import Ledger
from ..service.naming import description

_ledger = Ledger()


class DFloat11Compress:
    """One BF16 model becomes one DFloat11 file."""

    CATEGORY = "DFloat11"
    DESCRIPTION = description(
        "Compresses a BF16 model by about 30 %, losslessly: the file decodes to the same bits. Needs no GPU. "
        "The result lies next to the source; load it with the DFloat11 loader that the report names."
    )
    SEARCH_ALIASES = ["DF11", "compress model", "lossless"]
    FUNCTION = "compress"
    OUTPUT_NODE = True
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
                "model": (
                    sources.choices(folders),
                    {
                        "tooltip": "A BF16 model. Of one under checkpoints/ only the diffusion model is compressed; "
                        "the result goes to diffusion_models."
                    },
                ),
                "architecture": (
                    architectures.choices(folders),
                    {"tooltip": "auto finds it from the file. A wrong choice is refused."},
                ),
                "output_name": (
                    "STRING",
                    {"default": "", "tooltip": "Name of the new file. Empty: <name of the model>-DF11.safetensors"},
                ),
                "header": (
                    ["self-describing", "official"],
                    {
                        "tooltip": "self-describing: keeps what is needed to restore and check the source. "
                        "official: byte for byte what the official tool writes."
                    },
                ),
                "verify": (
                    ["full", "off"],
                    {"tooltip": "full: decodes what was written and compares every bit before the file gets its name."},
                ),
                "if_exists": (
                    ["skip", "error", "replace", "number"],
                    {"tooltip": "skip: does nothing if the file is already this result, and stops if it is another."},
                ),
            },
            "optional": {
                "cast": (
                    ["none", "to-bf16"],
                    {
                        "advanced": True,
                        "tooltip": "to-bf16: rounds F32 and F16 weights, which is not lossless. "
                        "The report says how many values changed.",
                    },
                ),
                "max_rate": (
                    "INT",
                    {
                        "default": 0,
                        "min": 0,
                        "max": 100_000,
                        "advanced": True,
                        "tooltip": "Megabytes of the source a second; 0: no limit. For shared and network drives.",
                    },
                ),
                "max_memory": (
                    "INT",
                    {
                        "default": 0,
                        "min": 0,
                        "max": 1_048_576,
                        "step": 64,
                        "advanced": True,
                        "tooltip": "Memory for the run in MiB; 0: a quarter of what is free, at most 1024.",
                    },
                ),
                "threads": (
                    "INT",
                    {
                        "default": 0,
                        "min": 0,
                        "max": 1024,
                        "advanced": True,
                        "tooltip": "0: all cores, at low priority.",
                    },
                ),
                # Behind the others: saved workflows know widgets by their order.
                "keep_uncompressed": (
                    "BOOLEAN",
                    {
                        "default": False,
                        "advanced": True,
                        "tooltip": "Leaves parts of the model as they are that DFloat11 cannot hold or would make "
                        "larger, where the loader takes them so. The report names them.",
                    },
                ),
            },
            "hidden": {"unique_id": "UNIQUE_ID"},
        }

    @classmethod
    def VALIDATE_INPUTS(cls, model: str | None = None, output_name: str | None = None) -> bool | str:
        # ComfyUI drops its own checks for the inputs named here and shows the sentence once for each: so only two.
        return compress.check(folders, model, output_name) or True

    @classmethod
    def IS_CHANGED(cls, unique_id: str = "", **widgets: Any) -> str | float:
        # NaN is equal to nothing, so that the node runs. None comes from a link, whose value is not known yet.
        if None in widgets.values():
            return float("nan")
        try:
            request = compress.Request(**widgets)
            return _ledger.fingerprint(request, sources.find(folders, request.model).path)
        except NodeError:
            return float("nan")

    def compress(self, unique_id: str = "", **widgets: Any) -> dict[str, Any]:
        request = compress.Request(**widgets)
        monitor = Monitor(unique_id)
        try:
            result = compress.run(request, folders, monitor, has_node)
        except NodeError as error:
            monitor.say(str(error))
            # ComfyUI logs the traceback of every exception; raised anew, it is as short as it can be.
            raise NodeError(str(error)) from None
        _ledger.remember(request, result.target)
        return {"ui": {"text": [result.report]}, "result": (result.model_name, result.report)}
