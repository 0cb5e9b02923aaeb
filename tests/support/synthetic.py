"""Small synthetic checkpoints of every architecture, made from the definitions in `architectures/`.

Each has every unit pattern instantiated, distinct sizes within a unit, the names and sizes that detection asks
for, tensors outside the units, and what is peculiar to the published files (the table `PUBLISHED` below; facts from
their headers). Values are pseudo-random and depend on the seed and the tensor's name only.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from support.architectures import Architecture
from support.tensors import Tensor, Tensors, bf16, to_f32, write_safetensors

# 10 comes before 2 in bytewise order of names.
INDICES = ("0", "1", "2", "10")
# More values than this are repeated.
DISTINCT_VALUES = 1 << 20


@dataclass(frozen=True)
class Published:
    """How published checkpoints of an architecture look beyond what the definition says."""

    prefix: str = ""
    metadata: dict[str, str] | None = None
    # Name of a norm in each unit module; one that ends in .scale is there to be renamed or to be left alone.
    norm: str = "norm.weight"
    # More tensors in the model: name -> (dtype, shape).
    model: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    # Tensors outside the model's prefix.
    outside: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    # Source names (regex) of weights that are F32.
    f32: str = r"(?!)"
    # Of two accepted names detection gets the one with this ending.
    spelling: str = ".weight"


_SCALE = {"norm": "norm.query_norm.scale", "spelling": ".scale"}
_COSMOS = {
    "blocks.0.self_attn.q_norm._extra_state": ("U8", (12,)),
    "blocks.1.self_attn.q_norm._extra_state": ("U8", (0,)),
    "accum_image_sample_counter": ("I64", ()),
    "accum_video_sample_counter": ("I64", ()),
    "accum_iteration": ("I64", ()),
    "accum_train_in_hours": ("F32", ()),
    "pos_embedder.seq": ("F32", (16,)),
    "pos_embedder.dim_spatial_range": ("F32", (5,)),
    "pos_embedder.dim_temporal_range": ("F32", (6,)),
}
_FULL_CHECKPOINT = {
    "conditioner.embedders.0.transformer.text_model.embeddings.position_embedding.weight": ("BF16", (7, 16)),
    "conditioner.embedders.1.model.logit_scale": ("F16", ()),
    "first_stage_model.decoder.conv_in.weight": ("F32", (8, 4, 3, 3)),
    "first_stage_model.decoder.conv_in.bias": ("F32", (8,)),
}

PUBLISHED: dict[str, Published] = {
    "Flux": Published(prefix="model.diffusion_model.", **_SCALE, outside={"vae.decoder.conv_in.bias": ("F32", (8,))}),
    "FluxSchnell": Published(**_SCALE, metadata={"modelspec.title": "Flux 'schnell' \u00fc\u4e2d"}),
    "Flux2": Published(**_SCALE),
    "Flux2-alt": Published(**_SCALE),
    "OvisImage": Published(**_SCALE),
    # The published file has the new names already.
    "LongCatImage": Published(norm="norm.query_norm.weight"),
    "Chroma": Published(**_SCALE),
    "ChromaRadiance": Published(
        **_SCALE,
        model={
            "__x0__": ("BF16", (0,)),
            "nerf_image_embedder.embedder.0.weight": ("F32", (9, 67)),
            "nerf_image_embedder.embedder.0.bias": ("F32", (9,)),
        },
    ),
    "CosmosT2IPredict2": Published(prefix="net.", model=_COSMOS),
    "Anima": Published(prefix="net."),
    "ZImagePixelSpace": Published(model={"__x0__": ("BF16", (0,))}),
    "Lumina2": Published(model={"norm_final.weight": ("BF16", (24,))}),
    "Lens": Published(metadata={"lens_dit_dtype": "bfloat16"}),
    "SDXL": Published(prefix="model.diffusion_model.", outside=_FULL_CHECKPOINT, metadata={"global_step": "78518"}),
    "ACEStep15": Published(metadata={"format": "pt"}),
    # F32 inside units, and norms that keep their .scale names.
    "Krea2": Published(norm="prenorm.scale", spelling=".scale", f32=r"(tmlp|tproj|txtmlp)\.\d\.weight"),
}


@dataclass(frozen=True)
class Checkpoint:
    """A source checkpoint: tensors in file order, with the prefix that its model's names have."""

    tensors: Tensors
    prefix: str
    metadata: dict[str, str] | None

    def write(self, path: Path) -> Path:
        write_safetensors(path, self.tensors, self.metadata)
        return path


def _characters(inside: str) -> tuple[str, ...]:
    """Those that a `[...]` with this inside matches; of digits the first and the last stand for all."""
    return (inside[0], inside[2]) if re.fullmatch(r"\d-\d", inside) else tuple(inside)


def expand_pattern(pattern: str) -> Iterator[str]:
    """Names that a unit pattern matches: every `\\d+` becomes each of INDICES, every `[...]` each of its characters."""
    if group := re.search(r"\((.*?)\)", pattern):
        before, after = pattern[: group.start()], pattern[group.end() :]
        for alternative in group[1].split("|"):
            yield from expand_pattern(before + alternative + after)
        return
    choices = []
    for token in re.findall(r"\\d\+\+?|\[[^]]*\]|\\\.|.", pattern):
        if token.startswith(r"\d"):
            choices.append(INDICES)
        elif token.startswith("["):
            choices.append(_characters(token[1:-1]))
        else:
            choices.append((token[-1],))
    for parts in product(*choices):
        name = "".join(parts)
        assert re.fullmatch(pattern, name), f"cannot expand {pattern}"
        yield name


def unit_modules(architecture: Architecture) -> list[str]:
    """Modules that are units: each pattern expanded, and those of the weights that detection asks for."""
    modules = dict.fromkeys(name for pattern in architecture.units for name in expand_pattern(pattern))
    for key in architecture.required:
        path = key.split(".")
        for depth in range(1, len(path)):
            module = ".".join(path[:depth])
            if key in architecture.unit_weights(module):
                modules[module] = None
    return list(modules)


def random_tensor(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """A tensor of plausible weights: normal with a few zeros and a few large values."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    count = int(np.prod(shape))
    if dtype in ("U8", "I64"):
        return Tensor(dtype, rng.integers(0, 100, shape).astype("|u1" if dtype == "U8" else "<i8"))
    values = rng.standard_normal(min(count, DISTINCT_VALUES)).astype(np.float32) * np.float32(0.02)
    values[rng.random(values.size) < 0.002] *= 64
    values[rng.random(values.size) < 0.002] = 0
    values = np.resize(values, shape) if count else np.zeros(shape, np.float32)
    if dtype == "BF16":
        return bf16(values)
    return Tensor(dtype, values.astype({"F32": "<f4", "F16": "<f2"}[dtype]))


def make_checkpoint(architecture: Architecture, seed: int = 0) -> Checkpoint:
    """A source checkpoint of `architecture`, in the order in which a model lists its tensors."""
    published = PUBLISHED.get(architecture.id, Published())
    plan: dict[str, tuple[str, tuple[int, ...]]] = {}
    for key in architecture.required:
        plan[key] = ("BF16", (24, 20))
    for group in architecture.alternatives:
        plan[next(key for key in group if key.endswith(published.spelling))] = ("BF16", (24,))
    for number, module in enumerate(unit_modules(architecture)):
        weights = architecture.unit_weights(module)
        for position, weight in enumerate(weights):
            f32 = re.fullmatch(published.f32, weight)
            plan[weight] = ("F32" if f32 else "BF16", (12 + position, 40 + 3 * position + number % 7))
        # Passthrough tensors in every dtype that sources have, some of them beside a unit's weights.
        bias = weights[0].removesuffix(".weight") + ".bias"
        plan[bias] = (("BF16", "F32", "F16")[number % 3], (12,))
        plan[f"{module}.{published.norm}"] = ("F32" if number % 2 else "BF16", (24,))
    plan["extra.bias"] = ("F32", (33,))
    plan |= published.model
    for key, axis, size in architecture.sizes:
        dtype, shape = plan.get(key, ("BF16", (24, 20)))
        if key.endswith("input_blocks.0.0.weight"):
            shape = (*shape[:2], 3, 3)
        plan[key] = (dtype, (*shape[:axis], size, *shape[axis + 1 :]))
    named = {published.prefix + name: entry for name, entry in plan.items()} | published.outside
    tensors = {name: random_tensor(name, *entry, seed) for name, entry in named.items()}
    return Checkpoint(tensors, published.prefix, published.metadata)


def expected_official(architecture: Architecture, tensors: Mapping[str, Tensor], prefix: str = "") -> Tensors:
    """The tensors that the official node's model holds after loading a source, before compression.

    Without the prefix, renamed, dropped where the model has no such tensor, and cast to BF16 except the few that
    ComfyUI itself declares as F32.
    """
    loaded: Tensors = {}
    for name, tensor in tensors.items():
        if not name.startswith(prefix) or architecture.is_dropped(name.removeprefix(prefix)):
            continue
        new = architecture.loaded_name(name.removeprefix(prefix))
        loaded[new] = cast(tensor, any(re.search(pattern, new) for pattern in architecture.keep_f32))
    return loaded


def cast(tensor: Tensor, keep_f32: bool = False) -> Tensor:
    """A tensor as a model in BF16 holds it, or one that declares it F32."""
    if tensor.dtype not in ("BF16", "F16", "F32"):
        return tensor
    if keep_f32:
        return Tensor("F32", to_f32(tensor).astype("<f4"))
    return tensor if tensor.dtype == "BF16" else bf16(to_f32(tensor))
