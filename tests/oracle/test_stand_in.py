"""The tests' own instruments: the kernel stand-in decodes official files, and faults where a GPU would."""

from pathlib import Path

import numpy as np
import pytest

from oracle import generators
from oracle.packing import single
from oracle.tables import expected_luts, has_dead_entry
from support.architectures import all_architectures
from support.official import (
    KernelFault,
    KernelHang,
    LaunchError,
    LoadError,
    compress_file,
    decode_unit,
    encode_unit,
    load_file_into,
    module_tree,
    unit_tensors,
)
from support.synthetic import expected_official, make_checkpoint, unit_modules
from support.tensors import Tensor, read_safetensors


def test_it_decodes_an_official_file(scratch: Path) -> None:
    architecture = all_architectures()["Flux"]
    checkpoint = make_checkpoint(architecture)
    model = expected_official(architecture, checkpoint.tensors, checkpoint.prefix)
    target = scratch / "official.safetensors"
    compress_file(model, architecture.units, target)
    written = read_safetensors(target)
    for module in unit_modules(architecture):
        source = np.concatenate([model[name].array.ravel() for name in architecture.unit_weights(module)])
        assert np.array_equal(decode_unit(unit_tensors(written, module)), source)
    load_file_into(module_tree(model), target, architecture.units)
    # A model that has another tensor is not filled.
    other = module_tree(model | {"other.bias": Tensor("BF16", np.zeros(4, "<u2"))})
    with pytest.raises(LoadError, match="other.bias"):
        load_file_into(other, target, architecture.units)


@pytest.mark.parametrize("field", ["luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps"])
def test_it_depends_on_every_tensor(field: str) -> None:
    weights = generators.gaussian(40_000, 1)
    unit = dict(encode_unit(single(weights)).tensors)
    assert np.array_equal(decode_unit(unit), weights)
    array = unit[field].array.copy()
    array.ravel()[: array.size // 2] ^= 1
    try:
        decoded = decode_unit(unit | {field: Tensor("U8", array)})
    except (KernelFault, KernelHang, LaunchError):
        return
    assert not np.array_equal(decoded, weights)


def test_too_many_weights_in_a_kernel_chunk_do_not_launch() -> None:
    weights = generators.from_counts({e: 1 for e in range(3, 30)} | {100: 60_000}, np.random.default_rng(0))
    with pytest.raises(LaunchError):
        decode_unit(encode_unit(single(weights)).tensors)


def test_the_rule_for_tables_agrees_with_the_official_encoder() -> None:
    drawn = generators.small_histograms(np.random.default_rng(6))
    units = [encode_unit(single(next(drawn))) for _ in range(300)]
    whole = [unit for unit in units if not unit.crashed]
    assert 200 < len(whole) < 300
    assert all(np.array_equal(expected_luts(unit.codes), unit.tensors["luts"].array) for unit in whole)
    assert not any(has_dead_entry(unit.tensors["luts"].array) for unit in whole[:50])
