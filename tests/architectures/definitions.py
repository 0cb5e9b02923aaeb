"""A second, small reading of the architecture files: detection, key rules, units and the release that follows.

It shares no code with the Rust implementation, so that the files can be checked before and beside it.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .headers import Shape, Tensors, in_file_order

COMFYUI = "comfyui"
FOLDER = Path(__file__).parents[2] / "architectures"
PREFIXES = ("model.diffusion_model.", "model.model.", "net.")

Definition = dict[str, Any]
Config = dict[str, Any]


def load_files() -> dict[str, Definition]:
    """Every architecture file, by file name."""
    return {path.name: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


def by_id() -> dict[str, Definition]:
    """Every architecture file, by the id inside it."""
    return {definition["id"]: definition for definition in load_files().values()}


def strip_prefix(tensors: Tensors) -> tuple[str, Tensors]:
    """ComfyUI's prefix for these names, and the tensors under it with the prefix removed."""
    counts = {prefix: sum(name.startswith(prefix) for name in tensors) for prefix in PREFIXES}
    prefix = max(PREFIXES, key=lambda candidate: counts[candidate])
    if counts[prefix] <= 5:
        prefix = "model." if any(name.startswith("model.") for name in tensors) else ""
    return prefix, {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def layout(definition: Definition) -> str:
    """How models of it are stored."""
    return definition.get("layout", COMFYUI)


def found(definitions: dict[str, Definition], source: Tensors, config: Config | None = None) -> list[str]:
    """The ids that match a source: a file of its own, or a folder with this config.json."""
    tensors = strip_prefix(source)[1] if config is None else source
    asked = {id_: known for id_, known in definitions.items() if (layout(known) == COMFYUI) == (config is None)}
    return [id_ for id_, known in asked.items() if matches(known, tensors, config)]


def matches(definition: Definition, tensors: Tensors, config: Config | None = None) -> bool:
    """Whether the definition's [detect] holds for names without prefix; rules on config.json count if there is one."""
    detect = definition.get("detect")
    if detect is None:
        return False

    def axis_is(rule: tuple[str, int, int]) -> bool:
        name, axis, value = rule
        return name in tensors and tensors[name][1][axis : axis + 1] == (value,)

    def says(rule: tuple[str, object]) -> bool:
        said = (config or {}).get(rule[0])
        return rule[1] in said if isinstance(said, list) else said == rule[1]

    return (
        (config is None or all(says(rule) for rule in detect.get("config", [])))
        and not any(says(rule) for rule in detect.get("not_config", []))
        and all(name in tensors for name in detect.get("all", []))
        and all(any(name in tensors for name in group) for group in detect.get("any", []))
        and not any(name in tensors for name in detect.get("none", []))
        and all(axis_is(rule) for rule in detect.get("shape", []))
        and not any(axis_is(rule) for rule in detect.get("not_shape", []))
    )


def apply_keys(definition: Definition, tensors: Tensors) -> Tensors:
    """The tensors that ComfyUI loads, under the names that its model has."""
    keys = definition.get("keys", {})

    def listed(kind: str, name: str) -> bool:
        return any(re.search(pattern, name) for pattern in keys.get(kind, []))

    kept: Tensors = {}
    for name, tensor in tensors.items():
        if listed("drop", name) and not listed("keep_always", name):
            continue
        for pattern, replacement in keys.get("rename", []):
            name = re.sub(pattern, replacement, name, count=1)
        assert name not in kept, f"two tensors would be called {name}"
        kept[name] = tensor
    return kept


def loaded(definition: Definition, source: Tensors) -> Tensors:
    """`apply_keys` without the prefix that a source in ComfyUI's layout has."""
    return apply_keys(definition, strip_prefix(source)[1] if layout(definition) == COMFYUI else source)


def units(definition: Definition, tensors: Tensors) -> dict[str, list[str]]:
    """Unit -> the modules whose weights it holds, in order. Raises AssertionError for an incomplete unit."""
    found: dict[str, list[str]] = {}
    for module in _module_paths(tensors):
        for unit in definition["units"]:
            if re.fullmatch(unit["pattern"], module):
                assert module not in found, f"{module}: two patterns match"
                found[module] = [f"{module}.{attribute}" for attribute in unit["attributes"]] or [module]
    for unit_name, members in found.items():
        missing = [member for member in members if f"{member}.weight" not in tensors]
        assert not missing, f"{unit_name} lacks {missing}"
    return found


def release(definition: Definition, source: Tensors) -> Tensors:
    """Names, dtypes, shapes and order of the official release; lengths that depend on the weights are None."""
    tensors = loaded(definition, source)
    keep_f32 = definition.get("keys", {}).get("keep_f32", [])
    made: Tensors = {}
    for unit, members in units(definition, tensors).items():
        weights = [_elements(tensors.pop(f"{member}.weight")[1]) for member in members]
        made |= {
            f"{unit}.luts": ("U8", (None, 256)),
            f"{unit}.encoded_exponent": ("U8", (None,)),
            f"{unit}.sign_mantissa": ("U8", (sum(weights),)),
            f"{unit}.output_positions": ("U8", (None,)),
            f"{unit}.gaps": ("U8", (None,)),
            f"{unit}.split_positions": ("I64", (len(weights) - 1,)),
        }
    for name, (_, shape) in tensors.items():
        made[name] = ("F32" if any(re.search(pattern, name) for pattern in keep_f32) else "BF16", shape)
    return in_file_order(made)


def recovered_shape(definition: Definition, unit: str, module: str, weights: int, tensors: Tensors) -> Shape | None:
    """The two-dimensional shape of a compressed weight from its weight count and the plain tensors alone."""
    rules = definition["shapes"]
    told: set[Shape] = set()
    bias = tensors.get(f"{module}.bias")
    if rules["from_bias"] and bias is not None:
        told.add(_two_sides("out", _elements(bias[1]), weights))
    rule = next((rule for rule in rules.get("rules", []) if re.search(rule["pattern"], module)), None)
    if rule:
        keys = [rule["key"]] if "key" in rule else [f"{unit}.{name}" for name in rule["in_unit"]]
        for key in keys:
            if key in tensors:
                told.add(_two_sides(rule["side"], (tensors[key][1][rule["axis"]] or 0) * rule["factor"], weights))
    assert len(told) < 2, f"{module}: {told}"
    return told.pop() if told else None


def _two_sides(side: str, known: int, weights: int) -> Shape:
    other = weights // known
    return (known, other) if side == "out" else (other, known)


def _module_paths(names: Tensors) -> Iterator[str]:
    parts = [name.split(".") for name in names]
    yield from sorted({".".join(path[:end]) for path in parts for end in range(1, len(path))})


def _elements(shape: Shape) -> int:
    return math.prod(length for length in shape if length is not None)
