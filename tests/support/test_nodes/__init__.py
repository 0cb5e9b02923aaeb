"""Nodes for tests in a real ComfyUI. They stand for what the tests cannot have: a text encoder, and the official
compressor and loader nodes, whose pack needs a GPU to be imported."""

import sys
from pathlib import Path

# The server links this folder into custom_nodes; the helpers lie beside its real place.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from .meta_nodes import ModelNames  # noqa: E402
from .official_nodes import ModelLoader, OfficialCheck, OfficialCompress, OfficialLoader  # noqa: E402
from .sampling_nodes import LatentDigest, TinyConditioning  # noqa: E402

NODE_CLASS_MAPPINGS = {
    "DFloat11ModelLoader": ModelLoader,
    "TestLatentDigest": LatentDigest,
    "TestModelNames": ModelNames,
    "TestOfficialCheck": OfficialCheck,
    "TestOfficialCompress": OfficialCompress,
    "TestOfficialLoader": OfficialLoader,
    "TestTinyConditioning": TinyConditioning,
}
