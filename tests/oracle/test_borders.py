"""Streams that end on, just before and just after the border of a window or kernel chunk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from oracle.generators import CHUNK_BITS, stream_of
from oracle.packing import Packed, differences, single
from support.official import Unit, encode_unit

# Borders of windows, of the first window after one, and of kernel chunks, in bits.
BORDERS = (64, 5 * 64, 511 * 64, CHUNK_BITS, CHUNK_BITS + 64, 2 * CHUNK_BITS)
DISTANCES = range(-12, 21)


@dataclass(frozen=True)
class Stream:
    """A unit whose bitstream has `bits` bits before the padding; its last code has `last` bits."""

    bits: int
    last: int
    weights: np.ndarray
    official: Unit

    @property
    def chunks(self) -> int:
        return -(-self.bits // CHUNK_BITS)

    @property
    def positions(self) -> int:
        return self.official.tensors["output_positions"].array.size // 4


def streams() -> Iterator[Stream]:
    rng = np.random.default_rng(20)
    for border in BORDERS:
        for distance in DISTANCES:
            for rare_last in (True, False):
                yield draw(border + distance, rng, rare_last)


def draw(bits: int, rng: np.random.Generator, rare_last: bool) -> Stream:
    """A unit of this length that the official encoder takes."""
    while True:
        weights = stream_of(bits, rng, rare_last=rare_last)
        if weights is None:
            continue
        unit = encode_unit(single(weights))
        if not unit.crashed:
            last, _ = unit.codes[int(weights[-1] >> 7) & 0xFF]
            return Stream(bits, last, weights, unit)


@pytest.fixture(scope="module")
def made() -> list[Stream]:
    return list(streams())


def test_official_quirks_are_among_the_cases(made: list[Stream]) -> None:
    """A last code that reaches into a new kernel chunk opens an entry for it unless the stream ends byte-aligned."""
    straddling = [s for s in made if 0 < s.bits % CHUNK_BITS < s.last and s.bits > CHUNK_BITS]
    aligned = [s for s in straddling if s.bits % 8 == 0]
    assert aligned and len(straddling) > len(aligned)
    assert all(s.positions == s.chunks for s in aligned)
    assert all(s.positions == s.chunks + 1 for s in made if s not in aligned)


def test_same_bytes(made: list[Stream], df11: Path, folder: Path) -> None:
    packed = Packed(df11, folder, [single(stream.weights) for stream in made])
    wrong = {}
    for index, stream in enumerate(made):
        fields = differences(packed.unit(index), stream.official)
        if fields:
            wrong[stream.bits, stream.last] = fields
    assert wrong == {}
