"""Models that are folders: exactly one definition matches each, by its config.json and its names."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from support.architectures import folder_architectures
from support.cli import CommandFailed, run_json
from support.folders import FolderModel, make_folder_model
from support.synthetic import unit_modules
from support.tensors import write_safetensors

from . import definitions, headers, name_sets
from .definitions import Config
from .headers import Tensors

BY_ID = definitions.by_id()
ARCHITECTURES = folder_architectures()
DETECTED = [id_ for id_ in ARCHITECTURES if "detect" in BY_ID[id_]]
MODELS = {id_: make_folder_model(architecture) for id_, architecture in ARCHITECTURES.items()}
MODULES = headers.modules()
COMFYUI = {name: headers.load(name).source.tensors for name in headers.names()}
COMFYUI |= {name: tensors for name, (_, tensors) in name_sets.relatives().items()}


def names(model: FolderModel) -> Tensors:
    return {name: (tensor.dtype, tensor.shape) for name, tensor in model.tensors.items()}


def planned(df11: Path, source: Path, choice: str) -> dict[str, Any]:
    """What is planned for a file of its own, into one file: a folder would need its config.json."""
    target = source.with_name("result.safetensors")
    return run_json(df11, "compress", source, "--arch", choice, "-o", target, "--dry-run")


@pytest.mark.parametrize("id_", DETECTED)
def test_model_matches_its_own_definition_only(id_: str) -> None:
    assert definitions.found(BY_ID, names(MODELS[id_]), MODELS[id_].config) == [id_]


@pytest.mark.parametrize("id_", DETECTED)
def test_a_file_of_its_own_is_taken_for_none_of_comfyui(id_: str) -> None:
    """Nothing, or what says why ComfyUI's loader could not use it."""
    assert all("refused" in BY_ID[found] for found in definitions.found(BY_ID, names(MODELS[id_])))


@pytest.mark.parametrize("id_", DETECTED)
def test_names_and_config_must_agree(id_: str) -> None:
    model, config = names(MODELS[id_]), MODELS[id_].config
    if BY_ID[id_]["detect"].get("config"):
        assert definitions.found(BY_ID, model, {}) == []
        assert definitions.found(BY_ID, model, config | {"_class_name": "Other", "architectures": ["Other"]}) == []
    for name in BY_ID[id_]["detect"]["all"]:
        found = definitions.found(BY_ID, {key: model[key] for key in model if key != name}, config)
        assert id_ not in found, name


@pytest.mark.parametrize("name", COMFYUI)
@pytest.mark.parametrize("config", [{}, *[MODELS[id_].config for id_ in ("flux-diffusers", "qwen3")]])
def test_a_comfyui_model_in_a_folder_matches_none(name: str, config: Config) -> None:
    assert definitions.found(BY_ID, COMFYUI[name], config) == []


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama-3"])
def test_tied_embeddings_decide(family: str) -> None:
    """A model without a word on it has its own output layer; transformers takes it so."""
    model, config = names(MODELS[family]), MODELS[family].config
    for said, expected in (({}, family), ({"tie_word_embeddings": False}, family)):
        assert definitions.found(BY_ID, model, config | said) == [expected]
    assert definitions.found(BY_ID, model, config | {"tie_word_embeddings": True}) == [f"{family}-tied"]


def test_the_spelling_of_the_patterns_is_told_by_the_layers_where_it_can() -> None:
    model, config = names(MODELS["llama-3"]), MODELS["llama-3"].config
    for layers, expected in ((32, "llama-3"), (80, "llama-3-70b"), (126, "llama-3")):
        assert definitions.found(BY_ID, model, config | {"num_hidden_layers": layers}) == [expected]


def test_every_pattern_is_in_its_model() -> None:
    for id_, model in MODELS.items():
        for pattern in BY_ID[id_]["units"]:
            units = definitions.units(
                {"units": [pattern]}, names(model) | dict.fromkeys(model.official(), ("BF16", ()))
            )
            assert units, (id_, pattern["pattern"])
            assert all(re.fullmatch(pattern["pattern"], unit) for unit in units)


@pytest.mark.parametrize("id_", ARCHITECTURES)
def test_a_file_of_its_own_is_compressed_where_it_is_named(id_: str, df11: Path, tmp_path: Path) -> None:
    """Nothing is stripped from its names, `model.` included, and the choice decides between families alike."""
    model, source = MODELS[id_], tmp_path / "model.safetensors"
    write_safetensors(source, model.official())
    report = planned(df11, source, id_)
    assert (report["architecture"], report["prefix"]) == (id_, "")
    assert {unit["name"] for unit in report["units"]} == set(unit_modules(model.architecture))


@pytest.mark.parametrize("id_", MODULES)
def test_names_are_those_of_the_real_classes(id_: str) -> None:
    """They are told, every unit is whole, and its shapes follow from what stays plain."""
    tensors = headers.of_module(id_)
    assert definitions.found(BY_ID, tensors, MODULES[id_]["config"]) == [id_]
    units = definitions.units(BY_ID[id_], tensors)
    assert all(any(re.fullmatch(unit["pattern"], found) for found in units) for unit in BY_ID[id_]["units"])
    compressed = {f"{member}.weight" for members in units.values() for member in members}
    plain = {name: tensor for name, tensor in tensors.items() if name not in compressed}
    for unit, members in units.items():
        for member in members:
            shape = tensors[f"{member}.weight"][1]
            weights = math.prod(side or 0 for side in shape)
            assert definitions.recovered_shape(BY_ID[id_], unit, member, weights, plain) == shape, member


def error(df11: Path, *arguments: object) -> str:
    with pytest.raises(CommandFailed) as failure:
        run_json(df11, *arguments)
    return str(json.loads(failure.value.output)["error"]["code"])


def test_a_choice_must_fit_the_names(df11: Path, tmp_path: Path) -> None:
    llama, flux, comfyui = (tmp_path / f"{name}.safetensors" for name in ("llama", "flux", "comfyui"))
    write_safetensors(llama, MODELS["llama-3"].tensors)
    write_safetensors(flux, MODELS["flux-diffusers"].tensors)
    headers.write_sparse(comfyui, headers.load("flux-schnell").source.tensors)
    assert error(df11, "inspect", llama) == "E_ARCH_UNKNOWN"
    assert error(df11, "inspect", flux) == "E_ARCH_REFUSED"
    for source, choice in ((llama, "qwen3"), (flux, "FluxSchnell"), (comfyui, "flux-diffusers")):
        assert error(df11, "inspect", source, "--arch", choice) in (
            "E_ARCH_CONTRADICTION",
            "E_ARCH_UNKNOWN",
            "E_ARCH_REFUSED",
        )
    for source, choice in ((llama, "mistral"), (flux, "flux-kontext-diffusers"), (comfyui, "FluxSchnell")):
        assert planned(df11, source, choice)["architecture"] == choice


def test_inspect_shows_what_a_file_would_become(df11: Path, tmp_path: Path) -> None:
    """A folder needs the model's config.json; one file does not, and the refusal says how to ask for it."""
    llama = tmp_path / "llama.safetensors"
    write_safetensors(llama, MODELS["llama-3"].tensors)
    choice = ("inspect", llama, "--arch", "llama-3")
    with pytest.raises(CommandFailed) as failure:
        run_json(df11, *choice)
    refusal = json.loads(failure.value.output)["error"]
    assert refusal["code"] == "E_CONFIG"
    assert "(layout file)" in refusal["hint"]
    assert run_json(df11, *choice, "--layout", "file")["layout"] == "file"
