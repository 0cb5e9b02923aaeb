"""Checkpoints of any size from one piece of data, for an architecture of their own."""

import json
import os
import struct
from pathlib import Path

import numpy as np

from support.tensors import bf16
from support.toy import toy_architecture

# Weights of the piece that is written over and over.
PIECE = 64 << 20
# Weights of the largest unit: as large as those of the largest published models.
LARGEST = 340_000_000
# Units that fit a span of 256 MiB, each larger than the one before: a buffer must not grow beyond what it needs.
GROWING = (10_000_000, 24_000_000, 35_000_000, 50_000_000)

ARCHITECTURE = toy_architecture("unit")


def make_piece(folder: Path) -> Path:
    """A file of PIECE weights with the distribution of trained ones."""
    random = np.random.default_rng(0)
    path = folder / "piece.bin"
    with path.open("wb") as file:
        for _ in range(16):
            file.write(bf16(random.standard_normal(PIECE // 16, np.float32) * 0.02).tobytes())
    return path


# The same model as a folder of diffusers.
FOLDER_ARCHITECTURE = ARCHITECTURE.replace('"Toy"', '"ToyFolder"\nlayout = "diffusers"')


def write_folder(folder: Path, piece: Path, total_bytes: int) -> None:
    """A model folder of two files of half of `total_bytes` each."""
    folder.mkdir()
    weight_map = {}
    for number in (0, 1):
        name = f"model-0000{number + 1}-of-00002.safetensors"
        names = write_source(folder / name, piece, total_bytes // 2, first_unit=number * 100)
        weight_map.update(dict.fromkeys(names, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text("{}")


def write_source(path: Path, piece: Path, total_bytes: int, first_unit: int = 0) -> list[str]:
    """A checkpoint of about `total_bytes`: growing units, the largest, units of one piece, a tensor of the rest.

    Returns its names.
    """
    sizes = [*GROWING, LARGEST]
    rest = total_bytes // 2 - sum(sizes)
    sizes += [PIECE] * (rest // PIECE)
    names = {f"unit.{index}.weight": size for index, size in enumerate(sizes, first_unit)}
    names[f"plain.{first_unit}"] = rest % PIECE
    header, offset = {}, 0
    for name, size in names.items():
        header[name] = {"dtype": "BF16", "shape": [size], "data_offsets": [offset, offset + 2 * size]}
        offset += 2 * size
    text = json.dumps(header).encode()
    with path.open("wb") as file, piece.open("rb") as data:
        file.write(struct.pack("<Q", len(text)) + text)
        file.flush()
        while offset:
            # The kernel copies: quicker than through this program, and it leaves its memory alone.
            copied = os.copy_file_range(data.fileno(), file.fileno(), min(offset, 2 * PIECE), 0)
            offset -= copied
    return list(names)
