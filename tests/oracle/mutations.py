"""Damages of DF11 files: one entry of one tensor changed, a tensor cut, or the header's text changed."""

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracle.packing import Weights
from support.official import KernelFault, KernelHang, LaunchError, decode_unit, unit_tensors
from support.tensors import Tensor, Tensors, read_header, read_safetensors

# Changes an entry in place.
Change = Callable[[np.ndarray, int], None]
# A share of the field's entries, or the index that a function of the unit gives.
Place = float | Callable[[Tensors], int]


@dataclass(frozen=True)
class Subject:
    """A sound file, one of its units, and what it was made from."""

    name: str
    file: Path
    source: Path
    definitions: Path
    unit: str
    weights: Weights
    described: bool
    # A tensor that is not compressed.
    other: str = "oracle.marker"

    def tensors(self) -> Tensors:
        return read_safetensors(self.file)


def decoded(unit: Tensors) -> np.ndarray | None:
    """A unit's weights as the kernel decodes them; None where it faults, hangs or does not start."""
    if unit["output_positions"].array.size < 8:
        # The loader cannot launch it, but the kernel could.
        unit = unit | {"output_positions": Tensor("U8", np.tile(unit["output_positions"].array, 2))}
    try:
        return decode_unit(unit)
    except (KernelFault, KernelHang, LaunchError):
        return None


def same_weights(subject: Subject, tensors: Tensors) -> bool:
    """Whether all weights are the source's: the unit's, as the kernel decodes them, and the other tensor's."""
    found = decoded(unit_tensors(tensors, subject.unit))
    same = found is not None and np.array_equal(found, np.concatenate(subject.weights))
    split = "split_positions"
    rest = (f"{subject.unit}.{split}", subject.other)
    before = subject.tensors()
    return same and all(tensors[name].equals(before[name]) for name in rest)


# What an entry of a field is. Gaps have 5 bits each and are taken apart.
ENTRY = {"luts": "|u1", "encoded_exponent": "|u1", "sign_mantissa": "|u1", "output_positions": "<u4", "gaps": "|u1"}
ENTRY |= {"split_positions": "<i8", "other": "<u2"}


def entries(field: str, tensor: Tensor) -> np.ndarray:
    """The entries of a field, as a copy."""
    raw = np.frombuffer(tensor.tobytes(), ENTRY[field])
    if field == "gaps":
        return np.packbits(np.unpackbits(raw).reshape(-1, 5), axis=1).ravel() >> 3
    return raw.copy()


def joined(field: str, values: np.ndarray, like: Tensor) -> Tensor:
    """The tensor of these entries, which may be fewer than before."""
    if field == "gaps":
        values = np.packbits(np.unpackbits(values[:, None], axis=1)[:, 3:].ravel())
    raw = np.frombuffer(values.tobytes(), like.array.dtype)
    return Tensor(like.dtype, raw.reshape(-1, *like.shape[1:]))


def flip(values: np.ndarray, at: int) -> None:
    values[at] ^= 1


def flip_high(values: np.ndarray, at: int) -> None:
    """The fourth bit: all entries have one."""
    values[at] ^= 8


def more(values: np.ndarray, at: int) -> None:
    values[at : at + 1] += 1


def less(values: np.ndarray, at: int) -> None:
    # One less than 0 is the largest.
    values[at : at + 1] -= 1


def swap(values: np.ndarray, at: int) -> None:
    """With the next one that differs, from the place on."""
    while values[at] == values[at + 1]:
        at += 1
    values[[at, at + 1]] = values[[at + 1, at]]


def changed(subject: Subject, field: str, change: Change, place: Place) -> Tensors:
    """The file's tensors with one entry changed."""
    tensors = subject.tensors()
    name = subject.other if field == "other" else f"{subject.unit}.{field}"
    values = entries(field, tensors[name])
    at = place(unit_tensors(tensors, subject.unit)) if callable(place) else int(place * (values.size - 1))
    if change is swap:
        at = min(at, int(np.flatnonzero(values[1:] != values[:-1])[-1]))
    before = values.copy()
    change(values, at)
    assert not np.array_equal(values, before)
    return tensors | {name: joined(field, values, tensors[name])}


def cut(subject: Subject, field: str) -> Tensors:
    """The file's tensors, one of them without its last entry; the header agrees."""
    tensors = subject.tensors()
    name = subject.other if field == "other" else f"{subject.unit}.{field}"
    tensor = tensors[name]
    rows = 4 if field == "output_positions" else 1
    return tensors | {name: Tensor(tensor.dtype, tensor.array[:-rows])}


def write_like(file: Path, tensors: Tensors, target: Path) -> None:
    """Writes tensors in the order and with the metadata of `file`."""
    old = read_header(file)
    header: dict[str, object] = {"__metadata__": old["__metadata__"]} if "__metadata__" in old else {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.tobytes())
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.writelines(tensor.tobytes() for tensor in tensors.values())


def with_text(file: Path, pattern: str, new: str) -> bytes:
    """The file with the first match in its header replaced by something as long."""
    raw = file.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    head, data = raw[8 : 8 + length].decode(), raw[8 + length :]
    text, count = re.subn(pattern, new, head, count=1)
    assert count == 1 and text != head and len(text.encode()) == length, pattern
    return raw[:8] + text.encode() + data


def table_used(unit: Tensors) -> int:
    """The first entry of the first table whose exponent is the most frequent one's."""
    lengths = unit["luts"].array[-1].astype(int)
    frequent = int(np.argmin(np.where(lengths == 0, 99, lengths)))
    return int(np.flatnonzero(unit["luts"].array[0] == frequent)[0])


def _length(exponent: int, unit: Tensors) -> int:
    return (unit["luts"].array.shape[0] - 1) * 256 + exponent


def length_used(unit: Tensors) -> int:
    """The code length of the most frequent exponent."""
    return _length(int(unit["luts"].array[0].ravel()[table_used(unit)]), unit)


def length_longest(unit: Tensors) -> int:
    """The code length of a rarest exponent."""
    return _length(int(np.argmax(unit["luts"].array[-1])), unit)


def length_unused(unit: Tensors) -> int:
    """The code length of an exponent that the unit has not."""
    return _length(int(np.flatnonzero(unit["luts"].array[-1, :240] == 0)[-1]), unit)


def last_gap(unit: Tensors) -> int:
    """The last window with a code that begins behind its first bit."""
    return int(np.flatnonzero(entries("gaps", unit["gaps"]))[-1])
