"""Tensors as raw numpy arrays, and safetensors files with full control of their layout.

The reference library sorts names and cannot write odd headers, so tests that need those write files with this
module. BF16 is held as its 16 bits in `uint16`; no torch is needed.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NUMPY_TYPES = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F8_E4M3": "|u1", "I64": "<i8", "U8": "|u1"}


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a safetensors file: dtype name and raw values (BF16 and FP8 as bit patterns)."""

    dtype: str
    array: np.ndarray

    def __post_init__(self) -> None:
        assert self.array.dtype == np.dtype(NUMPY_TYPES[self.dtype]), (self.dtype, self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def tobytes(self) -> bytes:
        return self.array.tobytes()

    def equals(self, other: "Tensor") -> bool:
        """Same dtype, shape and bytes."""
        return (self.dtype, self.shape, self.tobytes()) == (other.dtype, other.shape, other.tobytes())


Tensors = dict[str, Tensor]


def bf16(values: np.ndarray) -> Tensor:
    """Round floats to BF16, ties to even, as torch does. NaN is not handled: torch has two answers there."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return Tensor("BF16", (rounded >> 16).astype("<u2").reshape(np.shape(values)))


def to_f32(tensor: Tensor) -> np.ndarray:
    """The values of a BF16, F16 or F32 tensor."""
    if tensor.dtype == "BF16":
        return (tensor.array.astype(np.uint32) << 16).view(np.float32)
    return tensor.array.astype(np.float32)


def join_exponents(exponents: np.ndarray, sign_mantissa: np.ndarray) -> np.ndarray:
    """BF16 bit patterns with the given exponents (0..255) and sign and mantissa bytes."""
    low = sign_mantissa.astype(np.uint16)
    return (((low & 0x80) << 8) | (exponents.astype(np.uint16) << 7) | (low & 0x7F)).astype("<u2")


def write_safetensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    separators: tuple[str, str] = (",", ":"),
    padding: int = 8,
) -> None:
    """Write tensors in the order of the mapping, whatever their dtypes; the header as the arguments say."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata is not None else {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.array.nbytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=separators, ensure_ascii=False).encode()
    text += b" " * (-len(text) % padding)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(tensor.tobytes() for tensor in tensors.values())


def read_header(path: Path) -> dict[str, dict]:
    """The JSON header of a safetensors file, in its order, `__metadata__` included."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def read_safetensors(path: Path) -> Tensors:
    """Read all tensors of a file in its order. Checks that the data is contiguous."""
    header = read_header(path)
    header.pop("__metadata__", None)
    raw = np.memmap(path, np.uint8, "r")
    base = 8 + int(raw[:8].view("<u8")[0])
    tensors, expected = {}, 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == expected, f"{name} begins at {begin}, the data so far ends at {expected}"
        expected = end
        array = np.frombuffer(raw[base + begin : base + end].tobytes(), NUMPY_TYPES[entry["dtype"]])
        tensors[name] = Tensor(entry["dtype"], array.reshape(entry["shape"]))
    assert base + expected == raw.size, f"the header ends the data at {base + expected}, the file at {raw.size}"
    return tensors
