"""What is compressed: weights of several distributions, and checkpoints of them."""

import json
import os
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from compare.runs import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from memory.sources import ARCHITECTURE, PIECE, make_piece  # noqa: E402
from support.disks import forget  # noqa: E402
from support.tensors import bf16  # noqa: E402

# Weights of a row, and of what is drawn at a time.
ROW, BLOCK = 4096, 1 << 22

Draw = Callable[[np.random.Generator, int], np.ndarray]


def rows(random: np.random.Generator, count: int) -> np.ndarray:
    sigma = 0.005 * 16 ** random.uniform(size=(count // ROW, 1)).astype(np.float32)
    return (random.standard_normal((count // ROW, ROW), np.float32) * sigma).reshape(-1)


def zeros(random: np.random.Generator, count: int) -> np.ndarray:
    weights = random.standard_normal(count, np.float32) * np.float32(0.02)
    weights[random.integers(0, 20, count) == 0] = 0
    return weights


DISTRIBUTIONS: dict[str, Draw] = {
    "Gaussian, sigma 0.02": lambda random, count: random.standard_normal(count, np.float32) * np.float32(0.02),
    "Gaussian, sigma 0.005 to 0.08 by row": rows,
    "Gaussian, 5 % zeros": zeros,
    "Student t, 3 degrees of freedom": lambda random, count: (random.standard_t(3, count) * 0.02).astype(np.float32),
}


def write_weights(path: Path, draw: Draw, count: int) -> None:
    """Little-endian BF16 and nothing else."""
    random = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(count // BLOCK):
            file.write(bf16(draw(random, BLOCK)).tobytes())


def write_checkpoint(path: Path, weights: Path, units: Sequence[int]) -> None:
    """Units of so many weights; the data is that of `weights`, over and over."""
    header, offset = {}, 0
    for index, count in enumerate(units):
        ends = [offset, offset + 2 * count]
        header[f"unit.{index}.weight"] = {"dtype": "BF16", "shape": [count], "data_offsets": ends}
        offset = ends[1]
    text = json.dumps(header).encode()
    write_repeated(path, weights, offset, struct.pack("<Q", len(text)) + text)


def write_repeated(path: Path, weights: Path, size: int, start: bytes = b"") -> None:
    """`start`, then so many bytes of `weights`, over and over."""
    with path.open("wb") as file, weights.open("rb") as data:
        file.write(start)
        file.flush()
        while size:
            size -= os.copy_file_range(data.fileno(), file.fileno(), min(size, weights.stat().st_size), 0)
        os.fsync(file.fileno())


def write_architecture(folder: Path) -> None:
    (folder / "toy.toml").write_text(ARCHITECTURE)


__all__ = [
    "DISTRIBUTIONS",
    "PIECE",
    "forget",
    "make_piece",
    "write_architecture",
    "write_checkpoint",
    "write_repeated",
    "write_weights",
]
