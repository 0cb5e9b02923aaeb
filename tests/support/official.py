"""The official encoder and loader (`dfloat11` 0.5.0) on CPU. Needs the `oracle` environment.

cupy is stood in for by `cupy_cpu`; nothing of the package is changed except that it prints and shows no bars.
"""

import contextlib
import io
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from support.tensors import Tensor, Tensors

sys.path.insert(0, str(Path(__file__).parent / "cupy_cpu"))
# dfloat11 imports pkg_resources, which warns.
with warnings.catch_warnings(action="ignore"):
    import cupy
    import torch
    from cupy import KernelFault, KernelHang, LaunchError
    from dahuffman.huffmancodec import PrefixCodec
    from dfloat11 import dfloat11, dfloat11_utils

__all__ = ["KernelFault", "KernelHang", "LaunchError"]

UNIT_FIELDS = ("luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps", "split_positions")

Patterns = Mapping[str, Sequence[str]]


class _Linear(torch.nn.Linear):
    """A Linear without parameters of its own: the encoder treats a unit's module by its class."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)


def to_torch(tensor: Tensor) -> torch.Tensor:
    """A torch tensor with the same values."""
    array = torch.from_numpy(tensor.array.copy())
    return array.view(torch.bfloat16) if tensor.dtype == "BF16" else array


def module_tree(tensors: Mapping[str, Tensor]) -> torch.nn.Module:
    """Nested modules whose state_dict holds exactly `tensors`; a module with a two-axis `weight` is a Linear."""
    linear = {n.removesuffix(".weight") for n, t in tensors.items() if n.endswith(".weight") and len(t.shape) == 2}
    root = torch.nn.Module()
    for name, tensor in tensors.items():
        *path, leaf = name.split(".")
        module = root
        for depth, part in enumerate(path):
            if part not in module._modules:
                is_linear = ".".join(path[: depth + 1]) in linear
                module.add_module(part, _Linear() if is_linear else torch.nn.Module())
            module = module._modules[part]
        module.register_parameter(leaf, torch.nn.Parameter(to_torch(tensor), requires_grad=False))
    return root


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """No output, progress bars or warnings from the package; gives what the loader would have said."""
    said = io.StringIO()
    with (
        warnings.catch_warnings(action="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        # Bound at import.
        mock.patch.object(dfloat11, "stderr", said),
        # Its default stream was bound at import.
        mock.patch.object(PrefixCodec, "print_code_table", lambda self: None),
        mock.patch.object(dfloat11_utils, "tqdm", iter),
        mock.patch.object(dfloat11, "tqdm", lambda files, desc: files),
    ):
        yield said


def compress_module(model: torch.nn.Module, patterns: Patterns, target: Path) -> None:
    """Write `target` as the official ComfyUI node does: `compress_model` on `model`, which it changes.

    Raises UnboundLocalError where the encoder crashes.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, quiet():
        units = {pattern: list(attributes) for pattern, attributes in patterns.items()}
        dfloat11.compress_model(model, units, folder, check_correctness=False)
        shutil.move(Path(folder, "model.safetensors"), target)


def compress_folder(tensors: Mapping[str, Tensor], patterns: Patterns, target: Path) -> None:
    """Write the folder `target`: a file for each unit, the rest and config.json. Raises as `compress_module`."""
    units = {pattern: list(attributes) for pattern, attributes in patterns.items()}
    with quiet():
        dfloat11.compress_model(
            module_tree(tensors), units, str(target), save_single_file=False, check_correctness=False
        )


def compress_file(tensors: Mapping[str, Tensor], patterns: Patterns, target: Path) -> None:
    """`compress_module` on a model that holds `tensors`."""
    compress_module(module_tree(tensors), patterns, target)


@dataclass(frozen=True)
class Unit:
    """What the official functions make of a unit.

    Where the encoder crashes (UnboundLocalError, while it fills the tables) `crashed` is set and `luts` is missing;
    the other five tensors do not depend on it.
    """

    tensors: Tensors
    # Exponent, or None for the end-of-data code -> (bits, value).
    codes: dict[int | None, tuple[int, int]]
    crashed: bool

    @property
    def tables(self) -> int:
        return self.tensors["luts"].shape[0] - 1


def encode_unit(weights: Sequence[np.ndarray]) -> Unit:
    """Encode BF16 bit patterns (uint16 arrays, in attribute order) as one unit with the package's functions."""
    parts = [to_torch(Tensor("BF16", w)).flatten() for w in weights]
    with quiet():
        _, counts = dfloat11_utils.get_codec(torch.cat(parts))
        codec, _, table = dfloat11_utils.get_32bit_codec(counts)
        try:
            luts = dfloat11_utils.get_luts(table)
        except UnboundLocalError:
            luts = None
        encoded, sign_mantissa, positions, gaps, splits = dfloat11_utils.encode_weights(
            parts, codec, dfloat11.bytes_per_thread, dfloat11.threads_per_block[0]
        )
    fields = (luts, encoded, sign_mantissa, positions.view(torch.uint8), gaps, splits)
    tensors = {
        name: Tensor("I64" if field.dtype == torch.int64 else "U8", field.numpy())
        for name, field in zip(UNIT_FIELDS, fields, strict=True)
        if field is not None
    }
    codes = {symbol if isinstance(symbol, int) else None: code for symbol, code in table.items()}
    return Unit(tensors, codes, luts is None)


def unit_tensors(tensors: Mapping[str, Tensor], unit: str) -> Tensors:
    """The six tensors of one unit of a file, by field name."""
    return {field: tensors[f"{unit}.{field}"] for field in UNIT_FIELDS}


def decode_unit(unit: Mapping[str, Tensor]) -> np.ndarray:
    """Decode a unit's six tensors with the kernel stand-in, with the loader's own launch size. BF16 bit patterns.

    Raises LaunchError, KernelHang or KernelFault where a GPU would fail or hang.
    """
    positions = unit["output_positions"].array.view("<u4")
    # As the loader computes it; a unit with a single position cannot be loaded there.
    most = int(np.diff(positions).max())
    shared = dfloat11.threads_per_block[0] * 4 + 4 + 2 * most
    luts, codes, sign_mantissa = (unit[f].array for f in ("luts", "encoded_exponent", "sign_mantissa"))
    out = np.zeros(sign_mantissa.size, "<u2")
    inputs = (luts, codes, sign_mantissa, positions, unit["gaps"].array, out)
    arguments = [array.ctypes.data for array in inputs]
    launch = cupy.RawModule().get_function("decode")
    launch(shared_mem=shared, args=[*arguments, luts.shape[0], codes.size, out.size])
    return out


def complaints_in(said: str) -> list[str]:
    """Where the loader went on with a model that is not whole; it only prints that."""
    return [line for line in said.splitlines() if line.startswith(("Shape mismatch", "Cannot find"))]


class LoadError(Exception):
    """The loader only printed that something does not fit, or left a parameter unfilled."""


def load_file_into(model: torch.nn.Module, path: Path, patterns: Patterns) -> None:
    """`DFloat11Model.from_single_file` into an instantiated model; raises LoadError where it would go on in silence."""
    units = {pattern: list(attributes) for pattern, attributes in patterns.items()}
    _load_into(model, lambda: dfloat11.DFloat11Model.from_single_file(str(path), units, model, device="cpu"))


def load_folder_into(model: torch.nn.Module, path: Path) -> None:
    """`DFloat11Model.from_pretrained` likewise, of a folder."""
    _load_into(model, lambda: dfloat11.DFloat11Model.from_pretrained(str(path), device="cpu", bfloat16_model=model))


def _load_into(model: torch.nn.Module, load: Callable[[], object]) -> None:
    for parameter in model.parameters():
        parameter.data.fill_(torch.nan)
    with quiet() as said:
        load()
    complaints = complaints_in(said.getvalue())
    unfilled = [name for name, parameter in model.named_parameters() if parameter.isnan().any()]
    if complaints or unfilled:
        raise LoadError(f"loader: {complaints}; unfilled: {unfilled}")
