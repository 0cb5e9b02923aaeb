"""Units at which the official encoder crashes: there is nothing to be identical to but the rest of the unit.

Their tables follow the rule of the format's description: entries before a table's first set one take its value.
"""

from pathlib import Path

import numpy as np
import pytest

from oracle import generators
from oracle.packing import Packed, single
from oracle.tables import expected_luts
from support.official import Unit, decode_unit, encode_unit
from support.tensors import join_exponents

Case = tuple[np.ndarray, Unit]


def one_exponent(count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    return join_exponents(np.full(count, 120), rng.integers(0, 256, count))


@pytest.fixture(scope="module")
def crashing() -> list[Case]:
    """Lengths at which it always crashes, single exponents, and 200 units found by chance."""
    fixed = [generators.gaussian(3, seed) for seed in range(10)]
    fixed += [one_exponent(count) for count in (1, 2, 7, 8, 9, 63, 64, 65, 4096, 23550)]
    cases = [(weights, encode_unit(single(weights))) for weights in fixed]
    drawn = generators.small_histograms(np.random.default_rng(4))
    while len(cases) < 220:
        weights = next(drawn)
        unit = encode_unit(single(weights))
        if unit.crashed:
            cases.append((weights, unit))
    return cases


@pytest.fixture(scope="module")
def packed(crashing: list[Case], df11: Path, folder: Path) -> Packed:
    """Compressed with full verification, which must pass."""
    return Packed(df11, folder, [single(weights) for weights, _ in crashing])


def test_the_official_encoder_crashes(crashing: list[Case]) -> None:
    assert all(unit.crashed for _, unit in crashing)
    assert len(crashing) >= 200


def test_all_but_the_tables_is_official(crashing: list[Case], packed: Packed) -> None:
    for index, (_, official) in enumerate(crashing):
        ours = packed.unit(index)
        assert [f for f in official.tensors if not ours[f].equals(official.tensors[f])] == [], packed.names[index]


def test_tables_follow_the_rule(crashing: list[Case], packed: Packed) -> None:
    for index, (_, official) in enumerate(crashing):
        assert np.array_equal(packed.unit(index)["luts"].array, expected_luts(official.codes)), packed.names[index]


def test_they_decode(crashing: list[Case], packed: Packed) -> None:
    for index, (weights, _) in enumerate(crashing):
        assert np.array_equal(decode_unit(packed.unit(index)), weights), packed.names[index]
