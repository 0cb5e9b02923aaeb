"""The definitions, applied to the headers of published checkpoints, give the headers of their DF11 releases."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import pytest

from . import definitions, headers, name_sets
from .definitions import Definition
from .headers import Tensors

FIXTURES = headers.names()
BY_ID = definitions.by_id()
# Digest that another project pins for the header of the published release (its 8 length bytes not included).
QWEN_IMAGE21_RELEASE = "fa5b70707d9d5e08d1c92e40dcdeedd64f72508f88ca942217c6fd419ff5ba5e"


def test_published_header_is_reproduced_to_the_byte() -> None:
    header = headers.header_bytes(headers.load("qwen-image21").release.tensors)
    assert len(header) == 28_408
    assert hashlib.sha256(header).hexdigest() == QWEN_IMAGE21_RELEASE


def test_sparse_file_has_the_published_size(tmp_path: Path) -> None:
    release = headers.load("qwen-image21").release.tensors
    path = tmp_path / "release.safetensors"
    headers.write_sparse(path, release)
    assert path.stat().st_size == 9_724_491_411
    assert path.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("name", FIXTURES)
def test_definition_gives_the_release(name: str) -> None:
    fixture = headers.load(name)
    made = definitions.release(BY_ID[fixture.architecture], fixture.source.tensors)
    assert list(made.items()) == list(headers.without_encoded_lengths(fixture.release.tensors).items())


@pytest.mark.parametrize("name", FIXTURES)
def test_shapes_are_recovered_from_the_release(name: str) -> None:
    fixture = headers.load(name)
    assert_recovered(BY_ID[fixture.architecture], fixture.source.tensors)


@pytest.mark.parametrize("name", ["krea2", "lens", "longcat", "z-image-pixel-space", "cosmos-t2i"])
def test_shapes_of_models_without_a_fixture_are_recovered(name: str) -> None:
    id_, source = name_sets.relatives()[name]
    assert_recovered(BY_ID[id_], source)


def assert_recovered(definition: Definition, source: Tensors) -> None:
    """Each compressed weight's shape follows from its weight count and the tensors that stay plain."""
    tensors = definitions.apply_keys(definition, definitions.strip_prefix(source)[1])
    units = definitions.units(definition, tensors)
    compressed = {f"{module}.weight" for modules in units.values() for module in modules}
    plain = {name: tensor for name, tensor in tensors.items() if name not in compressed}
    for unit, modules in units.items():
        for module in modules:
            shape = tensors[f"{module}.weight"][1]
            weights = math.prod(length for length in shape if length is not None)
            assert definitions.recovered_shape(definition, unit, module, weights, plain) == shape, module


@pytest.mark.parametrize("name", FIXTURES)
def test_release_meets_the_demands_of_the_loader(name: str) -> None:
    fixture = headers.load(name)
    loader, release = BY_ID[fixture.architecture]["loader"], fixture.release.tensors
    assert all(f"{unit}.sign_mantissa" in release for unit in loader.get("needs", []))
    for unit, allowed in loader.get("sizes", []):
        assert release[f"{unit}.sign_mantissa"][1][0] in allowed


def test_training_state_is_dropped() -> None:
    definition, (_, source) = BY_ID["CosmosT2IPredict2"], name_sets.relatives()["cosmos-t2i"]
    kept = definitions.apply_keys(definition, definitions.strip_prefix(source)[1])
    assert set(source) - {f"net.{name}" for name in kept} == {
        "net.accum_iteration", "net.pos_embedder.seq",
        *[f"net.pos_embedder.dim_{kind}_range" for kind in ("spatial", "temporal")],
        *[f"net.blocks.{block}.self_attn.k_norm._extra_state" for block in range(28)],
    }  # fmt: skip
