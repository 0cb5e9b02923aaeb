"""The rule for decode tables written down a second time, and what a table's dead entries are."""

from collections.abc import Mapping

import numpy as np

FIRST_JUMP = 240
LEVELS = 4

# Exponent, or None for the end-of-data code -> (bits, value).
Codes = Mapping[int | None, tuple[int, int]]


def expected_luts(codes: Codes) -> np.ndarray:
    """u8 [tables + 1, 256] for a code. Where the official encoder crashes, leading entries take the first set value."""
    texts = {symbol: f"{value:0{bits}b}" for symbol, (bits, value) in codes.items() if symbol is not None}
    prefixes = sorted({""} | {text[: (len(text) - 1) // 8 * 8] for text in texts.values()}, key=lambda p: (len(p), p))
    tables = np.zeros((len(prefixes) + 1, 256), np.uint8)
    carried = None
    for row, prefix in enumerate(prefixes):
        entries = {}
        for symbol, text in texts.items():
            if text.startswith(prefix):
                rest = text[len(prefix) :]
                jump = 256 - prefixes.index(prefix + rest[:8]) if len(rest) > 8 else None
                entries[int(rest[:8].ljust(8, "0"), 2)] = symbol if jump is None else jump
        if carried is None:
            carried = entries[min(entries)]
        for byte in range(256):
            carried = entries.get(byte, carried)
            tables[row, byte] = carried
    for symbol, text in texts.items():
        tables[-1, symbol] = len(text)
    return tables


def has_dead_entry(luts: np.ndarray) -> bool:
    """Whether some table entry leads, within the look-ups that the kernel makes, to a code length of 0."""
    lengths = luts[-1]
    # Bytes that follow do not matter one by one: a table is bad if any of its entries is.
    bad = {row: False for row in range(len(luts) - 1)}
    for _ in range(LEVELS):
        for row in bad:
            jumps = {256 - int(value) for value in luts[row] if value >= FIRST_JUMP}
            ends = [int(value) for value in luts[row] if value < FIRST_JUMP]
            bad[row] = any(lengths[value] == 0 for value in ends) or any(bad[table] for table in jumps) or row in jumps
    return bad[0]
