"""What ComfyUI builds for a checkpoint, from its header alone."""

import json
from pathlib import Path

import comfy.model_detection
import comfy.utils
import torch

from support.tensors import read_header

DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}


class ModelNames:
    """Writes the class and the tensors (name -> shape) of the model that ComfyUI instantiates; it takes no memory."""

    RETURN_TYPES = ()
    FUNCTION = "write"
    CATEGORY = "DFloat11/test"
    OUTPUT_NODE = True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"source": ("STRING", {}), "target": ("STRING", {}), "device": (["meta", "cpu"],)}}

    def write(self, source, target, device):
        """`source`: path of a checkpoint; `target`: path of the JSON file."""
        header = read_header(Path(source))
        header.pop("__metadata__", None)
        tensors = {n: torch.empty(e["shape"], dtype=DTYPES[e["dtype"]], device="meta") for n, e in header.items()}
        prefix = comfy.model_detection.unet_prefix_from_state_dict(tensors)
        tensors = comfy.utils.state_dict_prefix_replace(tensors, {prefix: ""}, filter_keys=True) or tensors
        config = comfy.model_detection.model_config_from_unet(tensors, "")
        config.set_inference_dtype(torch.bfloat16, None)
        model = config.get_model(tensors, "", device=device).diffusion_model
        shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
        Path(target).write_text(json.dumps({"class": type(config).__name__, "tensors": shapes}))
        return {}
