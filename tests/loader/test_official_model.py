"""`DFloat11Model` of the package dfloat11 takes our folders and files as it takes the official tool's: same outputs.

Small models of real classes, saved by their own libraries. In an environment with transformers 4.57, with which the
loader makes a language model itself; and with current transformers in this one.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlx_dfloat.format import DF11Checkpoint, open_checkpoint
from mlx_dfloat.reference import decode_group

from support import real_models
from support.architectures import folder_architectures
from support.cli import compress, run_json
from support.tensors import Tensors, read_header, read_safetensors, write_safetensors

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".envs" / "transformers-4.57" / "bin" / "python"
ARCHITECTURES = folder_architectures()
# Architecture -> how the worker makes it.
LANGUAGE_MODELS = {"qwen3": ("Qwen3", False), "llama-3-tied": ("Llama", True)}
# The versions of the format that a third party's reader takes.
VERSIONS = ["0.2.0", "0.3.1", "0.3.2", "0.5.0"]


class Worker:
    """The functions of `support.real_models` in the other environment."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        command = [str(PYTHON), str(ROOT / "tests" / "support" / "real_models.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, function: str, **arguments: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        known = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
        self.process.stdin.write(json.dumps([function, known]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            # It has ended with a traceback; the tests to come have a worker all the same.
            self.close()
            self.start()
            pytest.fail(f"{function} failed, see above")
        return json.loads(answer)

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def place(scratch_root: Path) -> Iterator[Path]:
    made = scratch_root / "official-model"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@dataclass(frozen=True)
class Model:
    """A saved model, both compressed folders of it, and what it gives uncompressed."""

    architecture: str
    kind: str
    source: Path
    ours: Path
    official: Path
    expected: bytes

    @property
    def patterns(self) -> dict[str, list[str]]:
        return ARCHITECTURES[self.architecture].units


def make(worker: Worker, df11: Path, folder: Path, architecture: str, kind: str) -> Model:
    source, ours, official, expected = (folder / name for name in ("source", "ours", "official", "expected"))
    folder.mkdir()
    if kind == "flux":
        worker("make_flux", folder=source)
    else:
        family, tied = LANGUAGE_MODELS[architecture]
        weights = worker("make_language_model", folder=source, family=family, tied=tied)
        assert 0.9e6 < weights < 5e6
    assert len(list(source.glob("*.safetensors"))) > 1
    patterns = ARCHITECTURES[architecture].units
    worker("compress", kind=kind, source=source, patterns=patterns, target=official, single=False)
    assert compress(df11, source, ours)["architecture"] == architecture
    worker("run_plain", kind=kind, source=source, output=expected)
    return Model(architecture, kind, source, ours, official, expected.read_bytes())


@pytest.fixture(scope="module", params=sorted(LANGUAGE_MODELS))
def language_model(request: pytest.FixtureRequest, worker: Worker, df11: Path, place: Path) -> Model:
    return make(worker, df11, place / request.param, request.param, "llm")


@pytest.fixture(scope="module")
def flux(worker: Worker, df11: Path, place: Path) -> Model:
    return make(worker, df11, place / "flux", "flux-diffusers", "flux")


def weights_of(model: Model) -> Tensors:
    return {
        name: tensor for file in model.source.glob("*.safetensors") for name, tensor in read_safetensors(file).items()
    }


def assert_same(worker: Worker, model: Model, folder: Path, source: Path | None, output: Path) -> None:
    assert worker("run_directory", kind=model.kind, folder=folder, source=source, output=output) == []
    assert output.read_bytes() == model.expected


def test_a_language_model_is_made_from_our_folder(worker: Worker, language_model: Model, scratch: Path) -> None:
    for folder in (language_model.official, language_model.ours):
        assert_same(worker, language_model, folder, None, scratch / "logits")


def test_our_folder_fills_a_language_model(worker: Worker, language_model: Model, scratch: Path) -> None:
    assert_same(worker, language_model, language_model.ours, language_model.source, scratch / "logits")


def test_our_folder_fills_one_of_current_transformers(language_model: Model, scratch: Path) -> None:
    source, ours = str(language_model.source), str(language_model.ours)
    plain, filled = scratch / "plain", scratch / "filled"
    with real_models.quiet():
        real_models.run_plain("llm", source, str(plain))
        assert real_models.run_directory("llm", ours, source, str(filled)) == []
    assert filled.read_bytes() == plain.read_bytes()


def test_our_folder_fills_a_diffusers_model(worker: Worker, flux: Model, scratch: Path) -> None:
    for folder in (flux.official, flux.ours):
        assert_same(worker, flux, folder, flux.source, scratch / "sample")


def test_our_file_fills_a_diffusers_model(worker: Worker, flux: Model, df11: Path, scratch: Path) -> None:
    for header in ("self-describing", "official"):
        file, output = scratch / f"{header}.safetensors", scratch / "sample"
        compress(df11, flux.source, file, "--header", header)
        call = {"kind": flux.kind, "file": file, "patterns": flux.patterns, "source": flux.source, "output": output}
        assert worker("run_file", **call) == []
        assert output.read_bytes() == flux.expected


def decoded(checkpoint: DF11Checkpoint) -> dict[str, np.ndarray]:
    """Every weight that a third party's reader decodes, flat."""
    found: dict[str, np.ndarray] = {}
    for group in checkpoint.groups.values():
        arrays = group.load()
        parts = np.split(decode_group(arrays), arrays.split_positions)
        found |= dict(zip(group.matrix_names, parts, strict=True))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_another_reader_opens_our_folder(version: str, language_model: Model, df11: Path, scratch: Path) -> None:
    ours = scratch / "ours"
    compress(df11, language_model.source, ours, "--config-version", version)
    checkpoint = open_checkpoint(ours)
    assert checkpoint.config.version == version
    source, found = weights_of(language_model), decoded(checkpoint)
    assert len(checkpoint.groups) == len(list(ours.glob("*.safetensors"))) - 1
    assert source.keys() == found.keys() | checkpoint.extras.keys()
    for name, weights in found.items():
        assert np.array_equal(weights, source[name].array.ravel()), name


def merged(folder: Path, target: Path) -> None:
    """All tensors in one file, backwards, under a name of its own; config.json as it is."""
    target.mkdir()
    shutil.copy(folder / "config.json", target)
    tensors: Tensors = {}
    metadata: dict[str, str] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= read_safetensors(file)
        metadata |= read_header(file).get("__metadata__", {})
    write_safetensors(target / "all.safetensors", dict(reversed(tensors.items())), metadata or None)


def renamed(folder: Path, target: Path) -> None:
    """The same files under names that say nothing."""
    target.mkdir()
    for number, file in enumerate(sorted(folder.iterdir(), reverse=True)):
        name = file.name if file.suffix == ".json" else f"part-{number}.safetensors"
        shutil.copy(file, target / name)


@pytest.mark.parametrize("change", [merged, renamed])
def test_shards_may_be_merged_and_renamed(change: Any, worker: Worker, flux: Model, df11: Path, scratch: Path) -> None:
    changed = scratch / "changed"
    change(flux.ours, changed)
    assert run_json(df11, "verify", changed, "--against", flux.source)["unseen"] == []
    assert_same(worker, flux, changed, flux.source, scratch / "sample")
    assert run_json(df11, "restore", changed, "-o", scratch / "restored")["exact"]
    assert_same_files(scratch / "restored", flux.source)


def test_restored_is_the_saved_model(language_model: Model, df11: Path, scratch: Path) -> None:
    assert run_json(df11, "restore", language_model.ours, "-o", scratch / "restored")["exact"]
    assert_same_files(scratch / "restored", language_model.source)


def test_the_official_folder_of_a_language_model_becomes_usable(
    language_model: Model, df11: Path, scratch: Path
) -> None:
    assert_usable(language_model, df11, scratch)


def test_the_official_folder_of_a_diffusers_model_becomes_usable(flux: Model, df11: Path, scratch: Path) -> None:
    assert_usable(flux, df11, scratch)


def assert_usable(model: Model, df11: Path, scratch: Path) -> None:
    """A checkpoint with the model's names, shapes and bits, with nothing known of the source."""
    restored = scratch / "restored.safetensors"
    report = run_json(df11, "restore", model.official, "-o", restored)
    assert (report["exact"], report["architecture"]) == (False, model.architecture)
    found, source = read_safetensors(restored), weights_of(model)
    assert found.keys() == source.keys()
    assert [name for name in found if not found[name].equals(source[name])] == []


def assert_same_files(restored: Path, source: Path) -> None:
    """Weights, their index and config.json; what else lies in a model's folder is not ours."""
    for name in sorted(path.name for path in restored.iterdir()):
        assert (restored / name).read_bytes() == (source / name).read_bytes(), name
    weights = {path.name for path in source.iterdir() if ".safetensors" in path.name}
    assert weights | {"config.json"} <= {path.name for path in restored.iterdir()}
