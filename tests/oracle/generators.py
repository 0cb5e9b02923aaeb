"""Weights whose codes are hard: many tables, dead table entries, codes over 32 bits, streams that end on a border."""

from collections.abc import Iterator, Mapping

import numpy as np
from dahuffman import HuffmanCodec

from support.tensors import bf16, join_exponents

CHUNK_BITS = 32768
# Exponents from 240 on are the decode tables' jump codes.
EXPONENTS = 240


def gaussian(count: int, seed: int) -> np.ndarray:
    """Weights as trained models have them. BF16 bit patterns."""
    rng = np.random.default_rng([count, seed])
    return bf16(rng.standard_normal(count) * 0.02).array


def from_counts(counts: Mapping[int, int], rng: np.random.Generator, last: int | None = None) -> np.ndarray:
    """Weights with these exponents so many times, in random order; `last` is the last one's exponent."""
    exponents = np.repeat(np.array(list(counts)), np.array(list(counts.values())))
    rng.shuffle(exponents)
    if last is not None:
        at = np.flatnonzero(exponents == last)[-1]
        exponents[[at, -1]] = exponents[[-1, at]]
    return join_exponents(exponents, rng.integers(0, 256, exponents.size))


def code_lengths(counts: Mapping[int, int]) -> dict[int, int]:
    """Bits per exponent of the code for these counts, before any limit on the length."""
    table = HuffmanCodec.from_frequencies(dict(counts)).get_code_table()
    return {symbol: bits for symbol, (bits, _) in table.items() if isinstance(symbol, int)}


def pick_exponents(count: int, rng: np.random.Generator) -> list[int]:
    return rng.permutation(EXPONENTS)[:count].tolist()


def many_tables(tables: int, rng: np.random.Generator) -> np.ndarray:
    """Weights whose code has `tables` tables, 2 to 17 or more than may be: one frequent exponent and an even rest.

    The rest hangs below one bit, so that from 128 exponents on every further one adds a prefix of eight bits.
    """
    exponents = pick_exponents(127 + tables, rng)
    rest = int(rng.integers(2, 6))
    counts = {exponents[0]: rest * len(exponents) + int(rng.integers(0, 100))}
    counts |= {exponent: rest + int(rng.integers(0, 2)) for exponent in exponents[1:]}
    return from_counts(counts, rng)


def chain_counts(longest: int) -> dict[int, int]:
    """Counts whose unlimited code has one exponent more in each bit, up to `longest`; all differ.

    Each is just above the sum of all before the one before it: the smallest counts that make a chain.
    """
    counts, sums = [1, 2], [1, 3]
    while len(counts) < longest:
        # The end-of-data code has a count of 1 too.
        counts.append(sums[-2] + 2)
        sums.append(sums[-1] + counts[-1])
    return dict(zip(np.random.default_rng(longest).permutation(EXPONENTS).tolist(), counts, strict=False))


def stream_of(bits: int, rng: np.random.Generator, *, rare_last: bool) -> np.ndarray | None:
    """Weights whose bitstream has exactly `bits` bits before its padding, or None where this draw cannot reach it.

    The last weight has the longest code or the shortest one.
    """
    size = int(rng.integers(6, 22))
    exponents = pick_exponents(size, rng)
    ratio = float(rng.uniform(1.55, 2.1))
    counts = {exponent: int(ratio**index) + int(rng.integers(1, 3)) for index, exponent in enumerate(exponents)}
    scale = bits / sum(counts[e] * n for e, n in code_lengths(counts).items())
    counts = {exponent: max(1, int(count * scale)) for exponent, count in counts.items()}
    frequent = max(counts, key=counts.__getitem__)
    for _ in range(20):
        lengths = code_lengths(counts)
        missing = bits - sum(counts[e] * n for e, n in lengths.items())
        if missing == 0:
            last = max(lengths, key=lengths.__getitem__) if rare_last else frequent
            return from_counts(counts, rng, last)
        # The most frequent exponent has the shortest code, often of one bit.
        step = missing // lengths[frequent] if abs(missing) >= lengths[frequent] else (1 if missing > 0 else -1)
        counts[frequent] += step
        if counts[frequent] < 1:
            return None
    return None


def small_histograms(rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Small units with uneven codes without end; one in ten makes the official encoder crash."""
    while True:
        size = int(rng.integers(1, 24))
        yield from_counts({e: 1 + int(rng.pareto(0.6)) % 2000 for e in pick_exponents(size, rng)}, rng)


def geometric_histograms(rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Small units with falling counts without end; a few in a hundred have dead table entries."""
    while True:
        size, ratio = int(rng.integers(8, 20)), float(rng.uniform(1.4, 1.8))
        counts = {e: max(1, int(ratio**i * rng.uniform(0.8, 1.2))) for i, e in enumerate(pick_exponents(size, rng))}
        if sum(counts.values()) < 5000:
            yield from_counts(counts, rng)
