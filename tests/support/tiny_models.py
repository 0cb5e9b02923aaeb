"""Tiny BF16 checkpoints (2 to 3 MB) that a real ComfyUI, 0.16.3 or newer, detects, builds and samples.

ComfyUI reads these models' widths from the tensors; one attention head is the smallest width it can build. Only
numpy is needed. OvisImage is built by ComfyUI's class FluxSchnell.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from support.tensors import Tensors, bf16

# One head; the rotary embedding's axes sum up to it.
WIDTH = 128
POOLED = 32


@dataclass(frozen=True)
class TinyModel:
    """Sizes and layout of one tiny model. `context` is the width of its conditioning."""

    context: int
    # Whether the model takes the pooled conditioning.
    vector: bool = False
    guidance: bool = False
    channels: int = 64
    mlp: int = 4 * WIDTH
    # FLUX.2: one modulation for all, gated MLPs, no biases.
    flux2: bool = False
    # Ovis: MLPs of gate, up and down, and a norm on the conditioning.
    ovis: bool = False
    # The name of the norms' parameter in published files.
    norm: str = "scale"


TINY_MODELS = {
    "Flux": TinyModel(context=64, vector=True, guidance=True),
    "FluxSchnell": TinyModel(context=64, vector=True),
    "Flux2": TinyModel(context=64, guidance=True, channels=128, mlp=3 * WIDTH, flux2=True),
    # ComfyUI tells LongCat by this width, and knows no other name for its norms than the newer one.
    "LongCatImage": TinyModel(context=3584, norm="weight"),
    "OvisImage": TinyModel(context=64, ovis=True),
}


def _linears(model: TinyModel, double: int, single: int) -> dict[str, tuple[int, int]]:
    """Linear layers in the order of the model: name -> (out, in)."""
    layers = {"img_in": (WIDTH, model.channels), "time_in.in_layer": (WIDTH, 256), "time_in.out_layer": (WIDTH, WIDTH)}
    if model.vector:
        layers |= {"vector_in.in_layer": (WIDTH, POOLED), "vector_in.out_layer": (WIDTH, WIDTH)}
    if model.guidance:
        layers |= {"guidance_in.in_layer": (WIDTH, 256), "guidance_in.out_layer": (WIDTH, WIDTH)}
    layers["txt_in"] = (WIDTH, model.context)
    gated = 2 if model.flux2 or model.ovis else 1
    for index in range(double):
        for stream in ("img", "txt"):
            name = f"double_blocks.{index}.{stream}"
            if not model.flux2:
                layers[f"{name}_mod.lin"] = (6 * WIDTH, WIDTH)
            layers |= {f"{name}_attn.qkv": (3 * WIDTH, WIDTH), f"{name}_attn.proj": (WIDTH, WIDTH)}
            if model.ovis:
                layers |= {f"{name}_mlp.{part}_proj": (model.mlp, WIDTH) for part in ("gate", "up")}
                layers[f"{name}_mlp.down_proj"] = (WIDTH, model.mlp)
            else:
                layers |= {f"{name}_mlp.0": (gated * model.mlp, WIDTH), f"{name}_mlp.2": (WIDTH, model.mlp)}
    for index in range(single):
        name = f"single_blocks.{index}"
        layers |= {
            f"{name}.linear1": (3 * WIDTH + gated * model.mlp, WIDTH),
            f"{name}.linear2": (WIDTH, WIDTH + model.mlp),
        }
        if not model.flux2:
            layers[f"{name}.modulation.lin"] = (3 * WIDTH, WIDTH)
    layers |= {"final_layer.linear": (model.channels, WIDTH), "final_layer.adaLN_modulation.1": (2 * WIDTH, WIDTH)}
    if model.flux2:
        layers |= {f"double_stream_modulation_{stream}.lin": (6 * WIDTH, WIDTH) for stream in ("img", "txt")}
        layers["single_stream_modulation.lin"] = (3 * WIDTH, WIDTH)
    return layers


def _norms(model: TinyModel, double: int, single: int) -> dict[str, int]:
    """Norms: name -> width."""
    attention = [f"double_blocks.{i}.{stream}_attn.norm" for i in range(double) for stream in ("img", "txt")]
    attention += [f"single_blocks.{i}.norm" for i in range(single)]
    norms = {f"{name}.{part}_norm": WIDTH for name in attention for part in ("query", "key")}
    if model.ovis:
        norms["txt_norm"] = model.context
    return norms


def tiny_model(architecture: str, *, double: int = 1, single: int = 1, norm: str = "", seed: int = 0) -> Tensors:
    """A tiny checkpoint of one of TINY_MODELS. `norm`: `scale` or `weight`, by default as published."""
    model = TINY_MODELS[architecture]
    rng = np.random.default_rng(seed)
    tensors: Tensors = {}
    for name, shape in _linears(model, double, single).items():
        tensors[f"{name}.weight"] = bf16(rng.standard_normal(shape) * 0.02)
        if not model.flux2:
            tensors[f"{name}.bias"] = bf16(rng.standard_normal(shape[0]) * 0.02)
    for name, width in _norms(model, double, single).items():
        tensors[f"{name}.{norm or model.norm}"] = bf16(1 + rng.standard_normal(width) * 0.01)
    return tensors


def sampling_prompt(architecture: str, loader: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A prompt that samples the model of a loader node ("1") and shows the latent's digest (node "5").

    The nodes are those of `test_nodes`; two euler steps of a 64 x 64 image.
    """
    model = TINY_MODELS[architecture]
    latent = "EmptyFlux2LatentImage" if model.flux2 else "EmptySD3LatentImage"
    conditioning = {"tokens": 8, "width": model.context, "pooled": POOLED, "seed": 0}
    sampler = {"seed": 1, "steps": 2, "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "denoise": 1.0}
    links = {"model": ["1", 0], "positive": ["2", 0], "negative": ["2", 0], "latent_image": ["3", 0]}
    return {
        "1": loader,
        "2": {"class_type": "TestTinyConditioning", "inputs": conditioning},
        "3": {"class_type": latent, "inputs": {"width": 64, "height": 64, "batch_size": 1}},
        "4": {"class_type": "KSampler", "inputs": sampler | links},
        "5": {"class_type": "TestLatentDigest", "inputs": {"samples": ["4", 0]}},
    }
