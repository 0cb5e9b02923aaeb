"""Reads the header fixtures in tests/data/real_headers (layout: its README) and writes sparse checkpoints from them."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "real_headers"

# The safetensors writer puts the dtypes in this order and sorts names bytewise within one.
DTYPE_ORDER = {"I64": 0, "F32": 1, "BF16": 2, "F16": 3, "U8": 4}
DTYPE_BYTES = {"I64": 8, "F32": 4, "BF16": 2, "F16": 2, "U8": 1}

# A length that only an encoder can know is None.
Shape = tuple[int | None, ...]
Tensors = dict[str, tuple[str, Shape]]


@dataclass(frozen=True)
class Header:
    """One published file: where it is, its metadata, and name -> (dtype, shape) in the file's order."""

    repo: str
    sha: str | None
    file: str
    metadata: dict[str, str] | None
    tensors: Tensors


@dataclass(frozen=True)
class Fixture:
    """A BF16 checkpoint and the DF11 release that was made from it."""

    name: str
    architecture: str
    source: Header
    release: Header


def names() -> list[str]:
    """The fixtures' names, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> Fixture:
    """The fixture of that name. Raises AssertionError if an entry count does not fit."""
    data = json.loads((FOLDER / f"{name}.json").read_text())
    return Fixture(name, data["architecture"], _header(data["source"]), _header(data["release"]))


def modules() -> dict[str, Any]:
    """State dicts of small models of real classes under their checkpoints' names, by architecture id; see `of_module`.

    Of diffusers 0.39.0 and transformers 4.57.6. `config` holds what their config.json says.
    """
    found: dict[str, Any] = json.loads((FOLDER.parent / "module_names.json").read_text())
    return found


def of_module(id_: str) -> Tensors:
    """The tensors of one of `modules`."""
    described = modules()[id_]["tensors"]
    return {name: ("BF16", tuple(shape)) for pattern, shape in described for name in expand(pattern)}


def in_file_order(tensors: Tensors) -> Tensors:
    """The same tensors in the order in which the safetensors writer lays them out."""
    return dict(sorted(tensors.items(), key=lambda item: (DTYPE_ORDER[item[1][0]], item[0])))


def without_encoded_lengths(tensors: Tensors) -> Tensors:
    """The tensors as a header-only reader can know them: lengths that depend on the weights are None."""
    unknown: dict[str, Shape] = {
        "luts": (None, 256), "encoded_exponent": (None,), "gaps": (None,), "output_positions": (None,)
    }  # fmt: skip
    return {name: (dtype, unknown.get(name.rpartition(".")[2], shape)) for name, (dtype, shape) in tensors.items()}


def header_bytes(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """The safetensors header, without its 8 length bytes. All shapes must be known."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        end = offset + DTYPE_BYTES[dtype] * math.prod(_known(shape))
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text.ljust(-(-len(text) // 8) * 8)


def write_sparse(path: Path, tensors: Tensors, metadata: Mapping[str, str] | None = None) -> None:
    """A safetensors file of the full size whose data is a hole: reads as zeros and takes no disk space."""
    header = header_bytes(tensors, metadata)
    size = sum(DTYPE_BYTES[dtype] * math.prod(_known(shape)) for dtype, shape in tensors.values())
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        os.ftruncate(file.fileno(), 8 + len(header) + size)


def _header(data: dict[str, Any]) -> Header:
    tensors: Tensors = {}
    for pattern, dtype, shape in data["tensors"]:
        for name in expand(pattern):
            tensors[name] = (dtype, tuple(shape))
    for unit, (stream, rows) in data.get("encoded", {}).items():
        kernel_chunks = -(-stream // 4096)
        tensors[f"{unit}.encoded_exponent"] = ("U8", (stream,))
        tensors[f"{unit}.luts"] = ("U8", (rows, 256))
        tensors[f"{unit}.gaps"] = ("U8", (320 * kernel_chunks,))
        tensors[f"{unit}.output_positions"] = ("U8", (4 * (kernel_chunks + 1),))
    assert len(tensors) == data["count"], f"{data['file']}: {len(tensors)} tensors, not {data['count']}"
    return Header(data["repo"], data["sha"], data["file"], data["metadata"], in_file_order(tensors))


def expand(pattern: str) -> Iterator[str]:
    """`a.{0-2,5}.b` -> a.0.b, a.1.b, a.2.b, a.5.b; several braces give every combination."""
    pieces = re.split(r"\{([0-9,-]+)\}", pattern)
    choices: list[list[str]] = []
    for ranges in pieces[1::2]:
        numbers: list[str] = []
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            numbers += [str(number) for number in range(int(first), int(last or first) + 1)]
        choices.append(numbers)
    for combination in itertools.product(*choices):
        numbers_in_turn = iter((*combination, ""))
        yield "".join(text + next(numbers_in_turn) for text in pieces[::2])


def _known(shape: Shape) -> list[int]:
    assert None not in shape, "this length is not known without the encoder"
    return [length for length in shape if length is not None]
