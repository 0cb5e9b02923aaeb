"""An independent strict reader, the package `mlx-dfloat`, accepts and decodes our units."""

from pathlib import Path

import numpy as np
from mlx_dfloat.format import GroupArrays, validate_group_arrays
from mlx_dfloat.reference import decode_group

from oracle import generators
from oracle.packing import Packed, single
from oracle.test_borders import CHUNK_BITS, draw
from oracle.test_crashing import one_exponent
from support.official import encode_unit
from support.tensors import Tensors


def group(unit: Tensors) -> GroupArrays:
    arrays = {name: tensor.array for name, tensor in unit.items()}
    return GroupArrays(**arrays | {"output_positions": arrays["output_positions"].view("<u4")})


def test_it_decodes_our_units(df11: Path, scratch: Path) -> None:
    rng = np.random.default_rng(2)
    units = [generators.gaussian(count, 0) for count in (2, 100, 5000, 300_000)]
    units += [generators.many_tables(tables, rng) for tables in (2, 9, 17, 30)]
    units += [generators.from_counts(generators.chain_counts(longest), rng) for longest in (9, 17, 25)]
    units += [draw(CHUNK_BITS + distance, rng, True).weights for distance in range(-1, 10)]
    units += [one_exponent(count) for count in (1, 23550, 40_000)]
    packed = Packed(df11, scratch, [single(weights) for weights in units])
    for index, weights in enumerate(units):
        arrays = group(packed.unit(index))
        validate_group_arrays(arrays, name=packed.names[index])
        assert np.array_equal(decode_group(arrays), weights), packed.names[index]


def test_it_decodes_official_units() -> None:
    """The reader itself is sound: it takes what the official encoder writes, with and without the last position."""
    rng = np.random.default_rng(3)
    for bits in (CHUNK_BITS + 8, CHUNK_BITS + 9):
        stream = draw(bits, rng, True)
        assert np.array_equal(decode_group(group(encode_unit([stream.weights]).tensors)), stream.weights)
