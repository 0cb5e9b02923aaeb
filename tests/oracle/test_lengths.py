"""Units of every length from 1 to 2500 weights, against the official encoder."""

from pathlib import Path

import pytest

from oracle.generators import gaussian
from oracle.packing import Packed, differences, single
from support.official import Unit, encode_unit

LENGTHS = range(1, 2501)
DRAWS = 50
# At these the official encoder crashed in all draws: one exponent, or codes in which the end-of-data code is all zeros.
ALWAYS_CRASHES = [1, 3]


def first_that_works(length: int) -> tuple[list, Unit] | None:
    """The first draw of this length that the official encoder takes."""
    for seed in range(DRAWS):
        weights = single(gaussian(length, seed))
        unit = encode_unit(weights)
        if not unit.crashed:
            return weights, unit
    return None


@pytest.mark.timeout(120)
def test_every_length(df11: Path, folder: Path) -> None:
    drawn = {length: first_that_works(length) for length in LENGTHS}
    assert [length for length in LENGTHS if drawn[length] is None] == ALWAYS_CRASHES
    cases = {length: case for length, case in drawn.items() if case}
    # So many small units would make their file larger, which is refused; the last one makes up for them.
    large = single(gaussian(8_000_000, 0))
    packed = Packed(df11, folder, [*(weights for weights, _ in cases.values()), large])
    wrong = {}
    for index, (length, (_, official)) in enumerate(cases.items()):
        fields = differences(packed.unit(index), official)
        if fields:
            wrong[length] = fields
    assert wrong == {}
