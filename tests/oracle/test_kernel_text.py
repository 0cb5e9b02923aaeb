"""The official kernel's own text, `decode.ptx`, run on the CPU: it decodes our units and the official tool's.

The stand-ins for the kernel are written from what it does; here it is the kernel that speaks.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from oracle import generators
from oracle.packing import Packed, differences, single
from oracle.test_crashing import one_exponent
from support.official import dfloat11, encode_unit
from support.ptx import Fault, Kernel, Memory
from support.tensors import Tensor

THREADS, CHUNK_BYTES = 512, 4096
INPUTS = ("luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel.parse(Path(dfloat11.__file__).with_name("decode.ptx").read_text(), "decode")


def decode(kernel: Kernel, unit: Mapping[str, Tensor]) -> np.ndarray:
    """Launches the kernel as the loader does. Behind positions and gaps lies what it may read there, and the worst."""
    tensors = {name: unit[name].array for name in INPUTS}
    positions = tensors["output_positions"].view("<u4").astype(np.int64)
    weights, codes = tensors["sign_mantissa"].size, tensors["encoded_exponent"].size
    chunks = -(-codes // CHUNK_BYTES)
    behind = {"output_positions": 4 * (chunks + 1) - tensors["output_positions"].size, "gaps": 1}
    memory = Memory()
    pad = {name: np.full(behind.get(name, 0), 0xFF, np.uint8) for name in INPUTS}
    addresses = [memory.allocate(np.concatenate([tensors[name].ravel(), pad[name]])) for name in INPUTS]
    output = memory.allocate(np.full(weights, 0xFFFF, "<u2"))
    shared = 4 * THREADS + 4 + 2 * int(np.diff(positions).max())
    numbers = [unit["luts"].shape[0], codes, weights]
    kernel.launch(memory, chunks, THREADS, shared, [*addresses, output, *numbers])
    return memory.content(output, 2 * weights).view("<u2")


def border_streams() -> list[np.ndarray]:
    """Streams whose last code ends before, on and behind the border of a kernel chunk."""
    rng, found = np.random.default_rng(33), []
    for distance in (-1, 0, 3, 8):
        for rare_last in (True, False):
            stream = None
            while stream is None:
                stream = generators.stream_of(generators.CHUNK_BITS + distance, rng, rare_last=rare_last)
            found.append(stream)
    return found


def kinds() -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(34)
    return {
        "tiny": [generators.gaussian(count, count) for count in (1, 2, 7, 31)],
        "trained": [generators.gaussian(60_000, 3)],
        "borders": border_streams(),
        "tables": [generators.many_tables(tables, rng) for tables in (2, 9, 17)],
        "flattened": [generators.many_tables(tables, rng) for tables in (18, 40)],
        "one exponent": [one_exponent(count) for count in (100, 23_550, 23_551, 32_768, 40_000)],
        "near-constant": [generators.from_counts({100: rare, 99: 30_000}, rng) for rare in (2, 3_000, 12_000, 20_000)],
    }


@pytest.mark.parametrize("kind", kinds())
def test_it_decodes_our_units(kernel: Kernel, df11: Path, scratch: Path, kind: str) -> None:
    units = kinds()[kind]
    packed = Packed(df11, scratch, [single(weights) for weights in units])
    for index, weights in enumerate(units):
        assert np.array_equal(decode(kernel, packed.unit(index)), weights), (kind, index)


@pytest.mark.parametrize("kind", ["trained", "borders", "tables"])
def test_it_decodes_official_units(kernel: Kernel, df11: Path, scratch: Path, kind: str) -> None:
    units = kinds()[kind]
    packed = Packed(df11, scratch, [single(weights) for weights in units])
    for index, weights in enumerate(units):
        unit = encode_unit(single(weights))
        if unit.crashed:
            continue
        try:
            assert np.array_equal(decode(kernel, unit.tensors), weights), (kind, index)
        except Fault as fault:
            # Behind the last code it walks into a dead table entry for ever: where our tables are repaired.
            assert "does not end" in str(fault), (kind, index)
            assert differences(packed.unit(index), unit) == ["luts"], (kind, index)


@pytest.mark.parametrize("field", INPUTS)
def test_it_depends_on_every_tensor(kernel: Kernel, field: str) -> None:
    weights = generators.gaussian(20_000, 1)
    unit = dict(encode_unit(single(weights)).tensors)
    array = unit[field].array.copy()
    array.ravel()[: array.size // 2] ^= 1
    try:
        decoded = decode(kernel, unit | {field: Tensor("U8", array)})
    except Fault:
        return
    assert not np.array_equal(decoded, weights)


def test_too_many_weights_in_a_kernel_chunk_do_not_launch(kernel: Kernel) -> None:
    weights = generators.from_counts({e: 1 for e in range(3, 30)} | {100: 60_000}, np.random.default_rng(0))
    with pytest.raises(Fault, match="shared memory"):
        decode(kernel, encode_unit(single(weights)).tensors)
