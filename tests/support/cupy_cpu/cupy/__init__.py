"""A CPU stand-in for the few cupy names that `dfloat11` 0.5.0 uses, so that its loader runs without a GPU.

With the folder above this one first on `sys.path`, `RawModule(...).get_function("decode")` returns a numpy
implementation of the decode kernel with the kernel's own structure: each 8-byte thread window starts at its bit in
`gaps`, counts its weights, a prefix sum within each kernel chunk starts at `output_positions`, and a second walk
writes. It trusts exactly what the GPU trusts (luts, gaps, output_positions) and shares no code with any other
encoder or decoder of the project. About 10 million weights a second.
"""

import ctypes

import numpy as np

__version__ = "0.0-cpu-decode"
# The loader asks for no opt-in above this.
SHARED_MEMORY_LIMIT = 48 * 1024
THREADS = 512
WINDOW_BYTES = 8
CHUNK_BYTES = THREADS * WINDOW_BYTES
# The kernel keeps four bytes of the next window, enough for a code of 32 bits that starts at bit 63.
WINDOW_READ = WINDOW_BYTES + 4
FIRST_JUMP = 240
LEVELS = 4


class LaunchError(RuntimeError):
    """More dynamic shared memory than a launch without opt-in may have."""


class KernelHang(RuntimeError):
    """A look-up gave a code length of 0: the kernel would loop for ever."""


class KernelFault(RuntimeError):
    """A jump to a table that is not there, or an index outside an input or the output."""


class ndarray:  # noqa: N801
    """scipy asks for `sys.modules["cupy"].ndarray` in isinstance checks."""


def _look_up(luts, words):
    """Decode one code at the top of each 32-bit word. Returns (exponents, code lengths), both int64."""
    lengths = luts[-1]
    tables = np.zeros(words.shape, np.int64)
    values = np.zeros(words.shape, np.int64)
    pending = np.ones(words.shape, bool)
    for level in range(LEVELS):
        byte = (words >> np.uint64(24 - 8 * level)) & np.uint64(0xFF)
        values = np.where(pending, luts[tables, byte.astype(np.int64)], values)
        pending &= (values >= FIRST_JUMP) & (level < LEVELS - 1)
        if not pending.any():
            break
        tables = np.where(pending, 256 - values, tables)
        if (tables >= len(luts) - 1).any():
            raise KernelFault("a table entry jumps past the last table")
    return values, lengths[values].astype(np.int64)


class _Windows:
    """The bitstream of a unit cut into thread windows with their gaps."""

    def __init__(self, luts, codes, gaps):
        self.luts = luts
        self.chunks = -(-codes.size // CHUNK_BYTES)
        self.count = self.chunks * THREADS
        padded = np.zeros(self.count * WINDOW_BYTES + WINDOW_READ, np.uint8)
        padded[: codes.size] = codes
        take = np.arange(self.count)[:, None] * WINDOW_BYTES + np.arange(WINDOW_READ)
        window = padded[take]
        self.high = np.ascontiguousarray(window[:, :WINDOW_BYTES]).view(">u8").astype(np.uint64).ravel()
        self.low = np.ascontiguousarray(window[:, WINDOW_BYTES:]).view(">u4").astype(np.uint64).ravel()
        bits = np.unpackbits(gaps)
        if bits.size < self.count * 5:
            raise KernelFault(f"gaps holds {bits.size // 5} windows, the launch has {self.count}")
        self.gaps = bits[: self.count * 5].reshape(-1, 5).astype(np.int64) @ np.array([16, 8, 4, 2, 1])

    def walk(self, limits, emit):
        """Decode every window from its gap to its end, at most `limits` codes each. Returns the counts.

        `emit(windows, nth, exponents)` gets each step's decoded exponents, or is None.
        """
        counts = np.zeros(self.count, np.int64)
        index = np.flatnonzero(limits > 0)
        position = self.gaps[index]
        while index.size:
            head = (self.high[index] << position.astype(np.uint64)) >> np.uint64(32)
            over = np.maximum(position - 32, 0).astype(np.uint64)
            tail = np.where(over > 0, self.low[index] >> (np.uint64(32) - over), np.uint64(0))
            exponents, lengths = _look_up(self.luts, head | tail)
            if (lengths == 0).any():
                raise KernelHang("a table entry leads to a code of length 0")
            if emit is not None:
                emit(index, counts[index], exponents)
            counts[index] += 1
            position = position + lengths
            active = (position < 8 * WINDOW_BYTES) & (counts[index] < limits[index])
            index, position = index[active], position[active]
        return counts


def decode_unit(luts, codes, sign_mantissa, positions, gaps, outputs):
    """Decode one unit into `outputs`, in place.

    luts: u8 [tables + 1, 256]; codes: u8 [bytes]; sign_mantissa: u8 [weights]; positions: u32, an entry for each
    kernel chunk, with or without the last one; gaps: u8, 5 bits a window; outputs: u16 [weights], BF16 bits.
    """
    windows = _Windows(luts, codes, gaps)
    if positions.size < windows.chunks:
        raise KernelFault("output_positions has fewer entries than kernel chunks")
    weights = outputs.size
    counts = windows.walk(np.full(windows.count, np.iinfo(np.int64).max), None)
    per_chunk = counts.reshape(windows.chunks, THREADS)
    first = positions[: windows.chunks].astype(np.int64)[:, None]
    start = (first + np.cumsum(per_chunk, axis=1) - per_chunk).ravel()
    limits = np.clip(weights - start, 0, counts)
    # A kernel chunk writes only up to the next one's first weight; the last one's end may be missing (a legal quirk).
    following = np.append(positions[1:].astype(np.int64), weights)[: windows.chunks]
    stop = np.repeat(np.minimum(following, weights), THREADS)

    def emit(index, nth, exponents):
        at = start[index] + nth
        kept = at < stop[index]
        at, exponents = at[kept], exponents[kept].astype(np.uint16)
        if at.size and at.max() >= sign_mantissa.size:
            raise KernelFault("an output index lies past the end")
        low = sign_mantissa[at].astype(np.uint16)
        outputs[at] = ((low & 0x80) << 8) | (exponents << 7) | (low & 0x7F)

    windows.walk(limits, emit)


def _view(pointer, count, dtype):
    """`count` values of memory at an address, as an array."""
    dtype = np.dtype(dtype)
    raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(pointer)) if count else b""
    return np.frombuffer(raw, dtype)


def _decode(grid=None, block=None, shared_mem=0, args=()):
    """The kernel launch, with the arguments that dfloat11 passes."""
    if shared_mem > SHARED_MEMORY_LIMIT:
        raise LaunchError(f"{shared_mem} bytes of dynamic shared memory, the limit is {SHARED_MEMORY_LIMIT}")
    luts, codes, sign_mantissa, positions, gaps, outputs, rows, code_bytes, weights = args
    chunks = -(-code_bytes // CHUNK_BYTES)
    decode_unit(
        _view(luts, rows * 256, np.uint8).reshape(rows, 256),
        _view(codes, code_bytes, np.uint8),
        _view(sign_mantissa, weights, np.uint8),
        # The kernel reads chunks + 1 entries and clamps the last; it may lie past the tensor.
        _view(positions, chunks, "<u4"),
        _view(gaps, chunks * THREADS * 5 // 8, np.uint8),
        _view(outputs, weights, "<u2"),
    )


class RawModule:
    """Stands for a loaded PTX file; the file itself is not read."""

    def __init__(self, path=None, **_):
        self.path = path

    def get_function(self, name):
        if name != "decode":
            raise KernelFault(f"no kernel named {name}")
        return _decode


class _Device:
    """A context manager that selects no device."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class cuda:  # noqa: N801
    """Namespace of the device API."""

    Device = _Device
