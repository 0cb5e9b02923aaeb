"""Tensor names and shapes beyond the fixtures: relatives made from a fixture, and models that nothing may match.

Facts: ComfyUI's model_detection.py (0.33.0, and @ 5c4d256 for what came later). The names of `STRANGERS` are those by
which ComfyUI itself tells these models; shapes there do not matter unless they are what tells the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import headers
from .headers import Tensors


def _stripped(name: str, prefix: str = "") -> Tensors:
    return {key.removeprefix(prefix): tensor for key, tensor in headers.load(name).source.tensors.items()}


def _without(tensors: Tensors, pattern: str) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if not re.search(pattern, name)}


def _bf16(shapes: dict[str, tuple[int, ...]]) -> Tensors:
    return {name: ("BF16", shape) for name, shape in shapes.items()}


def _named(names: Iterable[str]) -> Tensors:
    return {name: ("BF16", (64, 64)) for name in names}


def _flux_dev() -> Tensors:
    guidance: dict[str, tuple[int, ...]] = {"in_layer.weight": (3072, 256), "out_layer.weight": (3072, 3072)}
    guidance |= {"in_layer.bias": (3072,), "out_layer.bias": (3072,)}
    return _stripped("flux-schnell") | _bf16({f"guidance_in.{name}": shape for name, shape in guidance.items()})


def _longcat() -> Tensors:
    shallow = _without(_stripped("flux-schnell"), r"^vector_in\.|^double_blocks\.1\d|^single_blocks\.[23]\d")
    named = {name.replace("_norm.scale", "_norm.weight"): tensor for name, tensor in shallow.items()}
    return named | _bf16({"txt_in.weight": (3072, 3584)})


def _cosmos() -> Tensors:
    """With the training state and position tables of the published file."""
    extra: Tensors = {"accum_iteration": ("F32", (1,)), "pos_embedder.seq": ("F32", (128,))}
    extra |= {f"pos_embedder.dim_{kind}_range": ("F32", (21,)) for kind in ("spatial", "temporal")}
    extra |= {f"blocks.{block}.self_attn.k_norm._extra_state": ("U8", (0,)) for block in range(28)}
    model = _without(_stripped("anima", "net."), r"^llm_adapter\.") | extra
    return {f"net.{name}": tensor for name, tensor in model.items()}


def _pixel_space() -> Tensors:
    shapes: dict[str, tuple[int, ...]] = {"cond_embed.weight": (3840, 3840), "final_layer.linear.weight": (768, 3840)}
    for block in range(4):
        for linear, rows in (("mlp.0", 3840), ("mlp.2", 3840), ("adaLN_modulation.1", 11520)):
            shapes[f"res_blocks.{block}.{linear}.weight"] = (rows, 3840)
            shapes[f"res_blocks.{block}.{linear}.bias"] = (rows,)
    decoder = _bf16({f"dec_net.{name}": shape for name, shape in shapes.items()})
    return _without(_stripped("zimage"), "^cap_pad_token$") | decoder | _bf16({"__x0__": (0,)})


def _krea2() -> Tensors:
    """Norms, biases and the time and text layers are F32, as in the published file; depths and widths are cut down."""
    tensors: Tensors = {"txtfusion.projector.weight": ("F32", (1, 12)), "txtmlp.0.scale": ("F32", (2560,))}
    for linear, shape in {
        "first": (6144, 64), "tmlp.0": (6144, 256), "tmlp.2": (6144, 6144), "tproj.1": (6144, 6144),
        "txtmlp.1": (6144, 2560), "txtmlp.3": (6144, 6144),
    }.items():  # fmt: skip
        tensors |= {f"{linear}.weight": ("F32", shape), f"{linear}.bias": ("F32", shape[:1])}
    for stack, width in (("blocks", 6144), ("txtfusion.layerwise_blocks", 2560), ("txtfusion.refiner_blocks", 2560)):
        for block in (0, 1):
            rows = dict.fromkeys(("attn.wq", "attn.gate", "attn.wo"), width)
            rows |= dict.fromkeys(("attn.wk", "attn.wv"), width // 4)
            rows |= dict.fromkeys(("mlp.gate", "mlp.up"), 2 * width)
            tensors |= _bf16({f"{stack}.{block}.{linear}.weight": (out, width) for linear, out in rows.items()})
            tensors[f"{stack}.{block}.mlp.down.weight"] = ("BF16", (width, 2 * width))
            tensors[f"{stack}.{block}.prenorm.scale"] = ("F32", (width,))
    return tensors


def _lens() -> Tensors:
    shapes: dict[str, tuple[int, ...]] = {"img_in.weight": (1536, 128), "img_in.bias": (1536,), "txt_in.bias": (1536,)}
    shapes |= {"txt_in.weight": (1536, 4096), "transformer_blocks.0.attn.norm_added_q.weight": (64,)}
    for linear, rows in {"img_qkv": 4608, "txt_qkv": 4608, "to_out.0": 1536, "to_add_out": 1536}.items():
        attention = f"transformer_blocks.0.attn.{linear}"
        shapes |= {f"{attention}.weight": (rows, 1536), f"{attention}.bias": (rows,)}
    for side in ("img", "txt"):
        block = f"transformer_blocks.0.{side}"
        shapes |= {f"{block}_mod.1.weight": (9216, 1536), f"{block}_mod.1.bias": (9216,)}
        shapes |= {f"{block}_mlp.{linear}.weight": (4096, 1536) for linear in ("w1", "w3")}
        shapes |= {f"{block}_mlp.w2.weight": (1536, 4096)}
    return _bf16(shapes)


def relatives() -> dict[str, tuple[str, Tensors]]:
    """Name -> (the architecture that must be found, source tensors)."""
    flux, zimage, lumina = _flux_dev(), _stripped("zimage"), _stripped("lumina2")
    in_one_file = {f"model.diffusion_model.{name}": tensor for name, tensor in flux.items()}
    return {
        "flux-dev": ("Flux", flux),
        "flux-dev in a checkpoint": ("Flux", in_one_file | _named(["vae.decoder.conv_in.weight"])),
        "flux-canny": ("Flux", flux | _bf16({"img_in.weight": (3072, 128)})),
        "flux-fill": ("FluxInpaint", flux | _bf16({"img_in.weight": (3072, 384)})),
        "longcat": ("LongCatImage", _longcat()),
        "cosmos-t2i": ("CosmosT2IPredict2", _cosmos()),
        "cosmos-i2v": ("CosmosI2VPredict2", _cosmos() | _bf16({"net.x_embedder.proj.1.weight": (2048, 72)})),
        "newbie": ("Lumina2", lumina | _bf16({"clip_text_pooled_proj.0.weight": (1024,)})),
        "z-image-omni": ("ZImage", zimage | _bf16({"siglip_embedder.0.weight": (1152,)})),
        "z-image-pixel-space": ("ZImagePixelSpace", _pixel_space()),
        "krea2": ("Krea2", _krea2()),
        "lens": ("Lens", _lens()),
        "diffusers-flux": ("diffusers-flux", _named([
            "transformer_blocks.0.attn.add_q_proj.weight", "transformer_blocks.0.attn.to_q.weight", "x_embedder.weight",
            "single_transformer_blocks.0.proj_mlp.weight", "context_embedder.weight", "norm_out.linear.weight"])),
        "diffusers-zimage": ("diffusers-zimage", _named([
            "noise_refiner.0.attention.norm_k.weight", "noise_refiner.0.attention.to_q.weight",
            "layers.0.attention.to_q.weight", "cap_embedder.1.weight"])),
        "diffusers-krea2": ("diffusers-krea2", _named([
            "transformer_blocks.0.attn.to_gate.weight", "text_fusion.projector.weight", "time_mod_proj.weight"])),
        "diffusers-sdxl": ("diffusers-sdxl", _named([
            "down_blocks.0.resnets.0.conv1.weight", "add_embedding.linear_1.weight", "conv_in.weight"])),
    }  # fmt: skip


def near_misses() -> dict[str, Tensors]:
    """Fixtures changed just so far that the loader would fail or build another model."""
    sdxl, zimage, qwen = _stripped("sdxl", "model.diffusion_model."), _stripped("zimage"), _stripped("qwen-image21")
    return {
        "ming-image": _without(zimage, "^cap_pad_token$"),
        "ming-image by its marker": zimage | _bf16({"__ming_image__": (0,)}),
        "sdxl inpainting": sdxl | _bf16({"input_blocks.0.0.weight": (320, 9, 3, 3)}),
        "ssd-1b": _without(sdxl, r"transformer_blocks\.[4-9]\."),
        "ernie of another size": _stripped("ernie-image") | _bf16({"layers.0.mlp.linear_fc2.weight": (2048, 6144)}),
        "krea2 of another width": _krea2() | _bf16({"blocks.0.attn.wq.weight": (4096, 4096)}),
        "qwen-image 2.1 with gate and up apart": _without(qwen, "gate_up"),
        "lens of another head size": _lens() | _bf16({"transformer_blocks.0.attn.norm_added_q.weight": (128,)}),
    }


STRANGERS: dict[str, Tensors] = {
    "qwen-image": _bf16({
        "img_in.weight": (3072, 64), "txt_in.weight": (3072, 3584), "txt_norm.weight": (3584,),
        "proj_out.weight": (64, 3072), "transformer_blocks.0.attn.norm_added_q.weight": (128,),
        "transformer_blocks.0.attn.to_q.weight": (3072, 3072),
        "transformer_blocks.0.attn.add_q_proj.weight": (3072, 3072),
        "transformer_blocks.0.img_mod.1.weight": (18432, 3072),
        "transformer_blocks.0.img_mlp.net.0.proj.weight": (12288, 3072)}),
    "mage-flow": _bf16({"txt_norm.weight": (2560,), "proj_out.weight": (128, 3072), "img_in.weight": (3072, 128)}),
    "hidream": _named(["caption_projection.0.linear.weight", "double_stream_blocks.0.block.attn1.to_q.weight"]),
    "hidream-o1": _named(["t_embedder1.mlp.0.weight", "x_embedder.proj1.weight"]),
    "omnigen2": _named(["time_caption_embed.timestep_embedder.linear_1.bias", "x_embedder.weight",
        "noise_refiner.0.attn.to_q.weight"]),
    "wan-2.1": _named(["head.modulation", "head.head.weight", "patch_embedding.weight", "blocks.0.ffn.0.weight",
        "blocks.0.self_attn.q.weight", "blocks.0.cross_attn.k.weight"]),
    "hunyuan-video": _named(["txt_in.individual_token_refiner.blocks.0.norm1.weight", "img_in.proj.weight",
        "double_blocks.0.img_attn.qkv.weight", "double_blocks.0.img_attn.norm.key_norm.scale",
        "double_blocks.0.img_mod.lin.weight", "single_blocks.0.linear1.weight", "single_blocks.0.modulation.lin.weight",
        "vector_in.in_layer.weight", "guidance_in.in_layer.weight"]),
    "ltxv": _named(["adaln_single.emb.timestep_embedder.linear_1.bias", "transformer_blocks.0.attn2.to_k.weight"]),
    "ideogram4": _named(["embed_image_indicator.weight", "input_proj.weight"]),
}  # fmt: skip
