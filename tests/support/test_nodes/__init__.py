"""Nodes for tests in a real ComfyUI. They stand for what the tests cannot have: a text encoder, and the official
compressor and loader nodes, whose pack needs a GPU to be imported."""

from .official_nodes import OfficialCheck, OfficialCompress, OfficialLoader
from .sampling_nodes import LatentDigest, TinyConditioning

NODE_CLASS_MAPPINGS = {
    "TestLatentDigest": LatentDigest,
    "TestOfficialCheck": OfficialCheck,
    "TestOfficialCompress": OfficialCompress,
    "TestOfficialLoader": OfficialLoader,
    "TestTinyConditioning": TinyConditioning,
}
