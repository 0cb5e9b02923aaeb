"""Models that are folders: for every architecture our result holds what the official tool's does, file by file."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oracle.test_architectures import explain
from support.architectures import folder_architectures
from support.cli import CommandFailed, compress, run_json
from support.folders import FolderModel, make_folder_model
from support.official import compress_file, compress_folder, load_file_into, load_folder_into, module_tree
from support.synthetic import cast, unit_modules
from support.tensors import Tensor, Tensors, read_header, read_safetensors, write_safetensors

ARCHITECTURES = folder_architectures()
# Nothing in a model tells this one: the user chooses it.
CHOICES = {"flux-kontext-diffusers"}


@dataclass(frozen=True)
class Case:
    """One architecture's model, our folder of it, and the official tool's folder and file."""

    model: FolderModel
    source: Path
    ours: Path
    report: dict[str, Any]
    official: Path
    official_file: Path

    @property
    def options(self) -> list[object]:
        return choice(self.model.architecture.id)

    @property
    def units(self) -> list[str]:
        return unit_modules(self.model.architecture)


def choice(id_: str) -> list[object]:
    return ["--arch", id_] if id_ in CHOICES else []


@pytest.fixture(scope="module", params=sorted(ARCHITECTURES))
def case(request: pytest.FixtureRequest, folder: Path, df11: Path) -> Case:
    architecture = ARCHITECTURES[request.param]
    place = folder / request.param
    place.mkdir()
    # A small unit is one at which the official encoder crashes now and then.
    for seed in range(50):
        model = make_folder_model(architecture, seed)
        try:
            compress_folder(model.official(), architecture.units, place / f"official-{seed}")
            # The official tool has the model in BF16.
            in_bf16 = {name: cast(tensor) for name, tensor in model.official().items()}
            compress_file(in_bf16, architecture.units, place / "official.safetensors")
            break
        except UnboundLocalError:
            continue
    source, ours = model.write(place / "source"), place / "ours"
    report = compress(df11, source, ours, "--layout", "folder", *choice(architecture.id))
    return Case(model, source, ours, report, place / f"official-{seed}", place / "official.safetensors")


def contents(folder: Path) -> Tensors:
    """All tensors of a folder; none may stand in two files."""
    found: Tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors = read_safetensors(file)
        assert found.keys().isdisjoint(tensors), file
        found |= tensors
    return found


def test_a_folder_is_the_official_one(case: Case) -> None:
    ours = case.ours
    assert case.report["architecture"] == case.model.architecture.id
    assert {unit["name"] for unit in case.report["units"]} == set(case.units)
    for unit in case.units:
        shard = f"{unit.replace('.', '_')}.safetensors"
        if (ours / shard).read_bytes() != (case.official / shard).read_bytes():
            pytest.fail(f"{shard}: {explain(ours / shard, case.official / shard)}")
    mine, theirs = contents(ours), contents(case.official)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not mine[name].equals(theirs[name])] == []
    # One file beside the units, and what lies beside the weights.
    stem = "model" if case.model.architecture.layout == "transformers" else "diffusion_pytorch_model"
    shards = {f"{unit.replace('.', '_')}.safetensors" for unit in case.units}
    assert {path.name for path in ours.iterdir()} == shards | {f"{stem}.safetensors", "config.json"}


def test_its_config_has_the_official_part(case: Case) -> None:
    """Beside it stands what the source's says, or in diffusers' layout what the published releases have."""
    config = json.loads((case.ours / "config.json").read_text())
    official = json.loads((case.official / "config.json").read_text())["dfloat11_config"]
    # To the order of the patterns, which is that in which they are tried.
    assert json.dumps(config.pop("dfloat11_config")) == json.dumps(official)
    kept = case.model.config if case.model.architecture.layout == "transformers" else {"model_type": "llama"}
    assert list(config.items()) == list(kept.items())


def test_a_file_is_the_official_one(case: Case, df11: Path, scratch: Path) -> None:
    ours = scratch / "ours.safetensors"
    compress(df11, case.source, ours, "--header", "official", *case.options)
    if ours.read_bytes() != case.official_file.read_bytes():
        pytest.fail(explain(ours, case.official_file))


def test_the_official_loader_fills_a_model(case: Case, df11: Path, scratch: Path) -> None:
    """Every parameter, from a folder and from a file: it would only print what does not fit."""
    file = scratch / "ours.safetensors"
    compress(df11, case.source, file, *case.options)
    model = case.model.official()
    load_folder_into(module_tree(model), case.ours)
    load_file_into(module_tree(model), file, case.model.architecture.units)


def test_all_are_verified_against_the_source(case: Case, df11: Path) -> None:
    """Whether copied tensors are in BF16, as in the official file, or keep F32, as in the official folder."""
    for compared in (case.ours, case.official, case.official_file):
        report = run_json(df11, "verify", compared, "--against", case.source, *case.options)
        assert report["unseen"] == []
        assert report["units"] == len(case.units)
        assert report["chunks_decoded"] == report["chunks"] > 0


def test_a_copied_tensor_of_another_value_is_seen(case: Case, df11: Path, scratch: Path) -> None:
    """One bit of F32 that BF16 would not have."""
    changed = scratch / "changed"
    shutil.copytree(case.official, changed)
    rest = next(file for file in changed.glob("*.safetensors") if "extra.bias" in read_header(file))
    tensors = read_safetensors(rest)
    values = tensors["extra.bias"].array.copy()
    values.view("u4")[7] ^= 1
    tensors["extra.bias"] = Tensor("F32", values)
    write_safetensors(rest, tensors)
    with pytest.raises(CommandFailed) as failure:
        run_json(df11, "verify", changed, "--against", case.source, *case.options)
    error = json.loads(failure.value.output)["error"]
    assert (error["code"], error["tensor"]) == ("E_VERIFY", "extra.bias")


def test_restored_shards_are_the_source_s(case: Case, df11: Path, scratch: Path) -> None:
    restored = scratch / "restored"
    assert run_json(df11, "restore", case.ours, "-o", restored)["exact"]
    names = sorted(path.name for path in case.source.iterdir())
    assert sorted(path.name for path in restored.iterdir()) == names
    for name in names:
        assert (restored / name).read_bytes() == (case.source / name).read_bytes(), name


def test_tied_tensors_must_be_equal(df11: Path, scratch: Path) -> None:
    """Where a source holds its output layer as well, that is left out if it is the embedding, and refused if not."""
    model = make_folder_model(ARCHITECTURES["qwen3-tied"])
    same = model.tensors["model.embed_tokens.weight"]
    for name, tensors in (("same", model.tensors | {"lm_head.weight": same}), ("none", model.tensors)):
        FolderModel(model.architecture, tensors, model.config).write(scratch / name)
        compress(df11, scratch / name, scratch / f"{name}-DF11")
    assert {path.name: path.read_bytes() for path in (scratch / "same-DF11").glob("model_layers*")} == {
        path.name: path.read_bytes() for path in (scratch / "none-DF11").glob("model_layers*")
    }
    assert "lm_head.weight" not in contents(scratch / "same-DF11")
    other = model.tensors | {"lm_head.weight": type(same)(same.dtype, same.array[::-1].copy())}
    FolderModel(model.architecture, other, model.config).write(scratch / "other")
    with pytest.raises(CommandFailed) as failure:
        compress(df11, scratch / "other", scratch / "other-DF11")
    error = json.loads(failure.value.output)["error"]
    assert error["tensor"] == "lm_head.weight"
    assert not (scratch / "other-DF11").exists()
