"""Units that the official form cannot hold: more than 17 tables, or too many weights in one kernel chunk."""

from pathlib import Path

import numpy as np

from oracle import generators
from oracle.packing import Packed, single
from oracle.test_crashing import one_exponent
from support.official import decode_unit, encode_unit


def test_more_than_seventeen_tables(df11: Path, scratch: Path) -> None:
    rng = np.random.default_rng(18)
    units = [generators.many_tables(tables, rng) for tables in (18, 19, 40, 100)]
    assert all(encode_unit(single(weights)).tables > 17 for weights in units)
    check(df11, scratch, units, "flattened")


def test_too_many_weights_in_a_kernel_chunk(df11: Path, scratch: Path) -> None:
    rng = np.random.default_rng(19)
    units = [one_exponent(count) for count in (23551, 32768, 100_000)]
    units += [generators.from_counts({e: 2 for e in others} | {99: 50_000}, rng) for others in ([100], range(5, 30))]
    check(df11, scratch, units, "two-bit")


def check(df11: Path, scratch: Path, units: list[np.ndarray], code: str) -> None:
    """Full verification passes, the kernel launches and decodes, and the report names the code."""
    packed = Packed(df11, scratch, [single(weights) for weights in units])
    for index, weights in enumerate(units):
        ours = packed.unit(index)
        assert ours["luts"].shape[0] <= 18
        assert np.array_equal(decode_unit(ours), weights), packed.names[index]
        assert packed.report_of(index)["code"] == code
        assert packed.report_of(index)["notes"]
