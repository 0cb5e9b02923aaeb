"""Compresses many small units in one file, by an architecture definition made for the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.cli import compress
from support.official import UNIT_FIELDS, Unit, unit_tensors
from support.tensors import Tensor, Tensors, read_safetensors, write_safetensors

# `single` units are a module itself, `pair` and `triple` units have two and three attributes, in no sorted order.
DEFINITION = r"""
schema = 1
id = "OracleUnits"
name = "Units for comparison with the official encoder"
source = "made by the tests"

[loader]
node = "none"
pack = "none"
url = "none"

[detect]
all = ["oracle.marker"]

[[units]]
pattern = 'single\.\d+'
attributes = []

[[units]]
pattern = 'one\.\d+'
attributes = ["b"]

[[units]]
pattern = 'pair\.\d+'
attributes = ["z", "a"]

[[units]]
pattern = 'triple\.\d+'
attributes = ["m", "a.0", "k"]
"""

ATTRIBUTES = {"single": [""], "one": [".b"], "pair": [".z", ".a"], "triple": [".m", ".a.0", ".k"]}

# A unit's BF16 bit patterns, in attribute order.
Weights = Sequence[np.ndarray]


def single(weights: np.ndarray) -> Weights:
    """A unit of one tensor."""
    return [weights]


class Packed:
    """Units that went through `df11 compress --header official`, in one file. Order and names are by position."""

    def __init__(self, df11: Path, folder: Path, units: Sequence[Weights], *options: str) -> None:
        definitions = folder / "definitions"
        definitions.mkdir(exist_ok=True)
        (definitions / "oracle-units.toml").write_text(DEFINITION)
        self.names = [_unit_name(index, weights) for index, weights in enumerate(units)]
        source, target = folder / "units.safetensors", folder / "units-DF11.safetensors"
        write_safetensors(source, _source(self.names, units))
        self.report: dict[str, Any] = compress(
            df11, source, target, "--architectures", definitions, "--header", "official", "--verify", "full", *options
        )
        self._tensors = read_safetensors(target)
        self._reports = {unit["name"]: unit for unit in self.report["units"]}

    def unit(self, index: int) -> Tensors:
        """The six tensors of a unit, by field name."""
        return unit_tensors(self._tensors, self.names[index])

    def report_of(self, index: int) -> dict[str, Any]:
        return self._reports[self.names[index]]


def _unit_name(index: int, weights: Weights) -> str:
    kinds = {1: ("single", "one"), 2: ("pair",), 3: ("triple",)}[len(weights)]
    return f"{kinds[index % len(kinds)]}.{index}"


def _source(names: Sequence[str], units: Sequence[Weights]) -> Tensors:
    tensors: Tensors = {"oracle.marker": Tensor("BF16", np.zeros(3, "<u2"))}
    for name, weights in zip(names, units, strict=True):
        for attribute, values in zip(ATTRIBUTES[name.split(".")[0]], weights, strict=True):
            tensors[f"{name}{attribute}.weight"] = Tensor("BF16", values.reshape(1, -1))
    return tensors


def differences(ours: Mapping[str, Tensor], official: Unit) -> list[str]:
    """The fields in which a unit differs from the official one."""
    return [field for field in UNIT_FIELDS if not ours[field].equals(official.tensors[field])]
