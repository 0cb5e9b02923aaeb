"""Codes with many tables, with dead table entries and over 32 bits, and units of several tensors."""

import json
from pathlib import Path

import numpy as np
import pytest

from oracle import generators
from oracle.packing import Packed, Weights, differences, single
from oracle.tables import has_dead_entry
from support.official import KernelHang, Unit, decode_unit, encode_unit
from support.tensors import join_exponents

HANG_UNITS = Path(__file__).with_name("hang_units.json")


def assert_same(df11: Path, folder: Path, units: list[tuple[Weights, Unit]]) -> Packed:
    packed = Packed(df11, folder, [weights for weights, _ in units])
    found = {index: differences(packed.unit(index), official) for index, (_, official) in enumerate(units)}
    assert {packed.names[index]: fields for index, fields in found.items() if fields} == {}
    return packed


def test_two_to_seventeen_tables(df11: Path, scratch: Path) -> None:
    rng = np.random.default_rng(17)
    units = []
    for tables in range(2, 18):
        for _ in range(3):
            weights = single(generators.many_tables(tables, rng))
            unit = encode_unit(weights)
            assert not unit.crashed
            assert unit.tables == tables
            units.append((weights, unit))
    assert_same(df11, scratch, units)


def test_chains_of_tables(df11: Path, scratch: Path) -> None:
    rng = np.random.default_rng(5)
    units = []
    for longest in range(2, 27):
        weights = single(generators.from_counts(generators.chain_counts(longest), rng))
        unit = encode_unit(weights)
        assert max(bits for bits, _ in unit.codes.values()) == longest
        if not unit.crashed:
            units.append((weights, unit))
    assert len(units) > 20
    assert max(unit.tables for _, unit in units) == 4
    assert_same(df11, scratch, units)


@pytest.mark.timeout(120)
def test_over_32_bits(df11: Path, scratch: Path) -> None:
    counts = generators.chain_counts(33)
    assert max(generators.code_lengths(counts).values()) == 33
    # Without equal counts above 1 the limiter has no choice, and every numpy gives the same code.
    assert len(set(counts.values())) == len(counts)
    weights = single(generators.from_counts(counts, np.random.default_rng(33)))
    unit = encode_unit(weights)
    assert not unit.crashed
    assert max(bits for bits, _ in unit.codes.values()) <= 32
    assert_same(df11, scratch, [(weights, unit)])


def test_dead_table_entries_are_reproduced(df11: Path, scratch: Path) -> None:
    units: list[tuple[Weights, Unit]] = []
    for weights in generators.geometric_histograms(np.random.default_rng(8)):
        unit = encode_unit(single(weights))
        if not unit.crashed and has_dead_entry(unit.tensors["luts"].array):
            units.append((single(weights), unit))
            if len(units) == 25:
                break
    assert_same(df11, scratch, units)


def test_units_whose_official_form_hangs_the_kernel(df11: Path, scratch: Path) -> None:
    """Their tail reaches a dead entry. Only the tables may differ from the official ones, and the unit is named."""
    rng = np.random.default_rng(0)
    lists = [np.array(exponents) for exponents in json.loads(HANG_UNITS.read_text())]
    units = [join_exponents(exponents, rng.integers(0, 256, exponents.size)) for exponents in lists]
    officials = [encode_unit(single(weights)) for weights in units]
    packed = Packed(df11, scratch, [single(weights) for weights in units])
    for index, (weights, official) in enumerate(zip(units, officials, strict=True)):
        with pytest.raises(KernelHang):
            decode_unit(official.tensors)
        ours = packed.unit(index)
        assert differences(ours, official) == ["luts"]
        assert np.array_equal(decode_unit(ours), weights)
        assert packed.report_of(index)["notes"]


def test_units_of_several_tensors(df11: Path, scratch: Path) -> None:
    """One, two and three tensors of different sizes: the order is the attributes', not the names'."""
    units: list[tuple[Weights, Unit]] = []
    seed = 0
    while len(units) < 60:
        seed += 1
        sizes = [seed * 7 + 1, 900 + seed, 3 * seed][: 1 + seed % 3]
        weights = [generators.gaussian(size, seed + part) for part, size in enumerate(sizes)]
        unit = encode_unit(weights)
        if not unit.crashed:
            units.append((weights, unit))
    assert {len(unit.tensors["split_positions"].array) for _, unit in units} == {0, 1, 2}
    assert_same(df11, scratch, units)
