"""`df11 restore` finds every compressed weight's shape again; whole models, of which only the header is known."""

from __future__ import annotations

import json
import math
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from . import definitions, headers, name_sets
from .headers import Tensors

BY_ID = definitions.by_id()
RELATIVES = name_sets.relatives()
# Name -> (architecture, source).
MODELS = {name: (headers.load(name).architecture, headers.load(name).source.tensors) for name in headers.names()}
MODELS |= {name: model for name, model in RELATIVES.items() if "refused" not in BY_ID[model[0]]}
MODELS["flux2-alt"] = ("Flux2-alt", MODELS["flux2"][1])
# Of language models a file alone does not tell the family.
MODELS |= {
    id_: (id_, headers.of_module(id_)) for id_ in headers.modules() if definitions.layout(BY_ID[id_]) != "transformers"
}


def model(name: str) -> Tensors:
    """The tensors that are loaded of a source, under the names that they have then."""
    id_, source = MODELS[name]
    return definitions.loaded(BY_ID[id_], source)


def write_release(path: Path, name: str) -> Tensors:
    """The official DF11 file of a source, of which only the split positions are written. Gives its tensors.

    The encoded lengths are made up: codes of 8 bits.
    """
    id_, source = MODELS[name]
    made, tensors = definitions.release(BY_ID[id_], source), model(name)
    splits = b""
    for unit, members in sorted(definitions.units(BY_ID[id_], tensors).items()):
        sizes = [math.prod(side or 0 for side in tensors[f"{member}.weight"][1]) for member in members]
        splits += struct.pack(f"<{len(sizes) - 1}q", *(sum(sizes[:end]) for end in range(1, len(sizes))))
        kernel_chunks = -(-sum(sizes) // 4096)
        lengths = {"luts": (5, 256), "encoded_exponent": (sum(sizes),), "gaps": (320 * kernel_chunks,)}
        for field, shape in (lengths | {"output_positions": (4 * (kernel_chunks + 1),)}).items():
            made[f"{unit}.{field}"] = ("U8", shape)
    headers.write_sparse(path, made)
    with path.open("r+b") as file:
        # Split positions come first, by name.
        file.seek(8 + len(headers.header_bytes(made)))
        file.write(splits)
    return made


def plan(df11: Path, path: Path, *options: str, code: int = 0) -> dict[str, Any]:
    run = subprocess.run(
        [df11, "restore", "--dry-run", "--json", *options, path], capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    return report


@pytest.mark.parametrize("name", MODELS)
def test_shapes_are_those_of_the_source(name: str, df11: Path, tmp_path: Path) -> None:
    path = tmp_path / "model-DF11.safetensors"
    release = write_release(path, name)
    report = plan(df11, path)
    id_ = MODELS[name][0]
    # Nothing in a file tells a variant of units from the model that it is for.
    assert report["architecture"] == BY_ID[id_].get("variant_of", id_)
    assert report["exact"] is False
    assert report["target"] == str(tmp_path / "model-restored.safetensors")
    restored = {tensor["name"]: (tensor["dtype"], tuple(tensor["shape"])) for tensor in report["tensors"]}
    expected = {key: release.get(key, ("BF16", shape)) for key, (_, shape) in model(name).items()}
    assert restored == expected
    assert list(restored) == list(headers.in_file_order(expected))


@pytest.mark.parametrize("name", ["flux2", "sdxl"])
def test_a_choice_must_agree(name: str, df11: Path, tmp_path: Path) -> None:
    path = tmp_path / "model-DF11.safetensors"
    write_release(path, name)
    id_ = MODELS[name][0]
    assert plan(df11, path, "--arch", id_)["architecture"] == id_
    error = plan(df11, path, "--arch", "Chroma", code=3)["error"]
    assert (error["code"], error["unit"] is not None) == ("E_ARCH_CONTRADICTION", True)


def test_every_architecture_is_reached() -> None:
    reached = {id_ for id_, _ in MODELS.values()}
    comfyui = {id_ for id_, definition in BY_ID.items() if definitions.layout(definition) == "comfyui"}
    assert reached & comfyui == {id_ for id_ in comfyui if "refused" not in BY_ID[id_]}
    assert len(reached - comfyui) == 6


def test_a_choice_decides_between_families_alike(df11: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "mistral", ("mistral", headers.of_module("mistral")))
    path = tmp_path / "model-DF11.safetensors"
    write_release(path, "mistral")
    assert plan(df11, path, code=3)["error"]["code"] == "E_ARCH_AMBIGUOUS"
    report = plan(df11, path, "--arch", "mistral")
    assert report["architecture"] == "mistral"
    assert {tensor["name"]: ("BF16", tuple(tensor["shape"])) for tensor in report["tensors"]} == MODELS["mistral"][1]
