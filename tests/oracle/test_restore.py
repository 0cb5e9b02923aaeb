"""A DF11 file that does not describe itself, of every architecture, by whichever tool, gives the model's tensors again.

The models are published ones with every side cut down: what the sides have to do with each other stays.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from architectures import definitions
from architectures.test_restore import MODELS
from support.architectures import Architecture, without_sizes
from support.cli import compress, run_json
from support.official import compress_file
from support.synthetic import random_tensor
from support.tensors import Tensors, read_header, read_safetensors, write_safetensors

# One model of each architecture, but for those that differ in nothing that shapes follow from.
NAMES = [name for name in MODELS if name not in ("flux-dev in a checkpoint", "flux-canny", "newbie", "z-image-omni")]
# What sides are divided by. The official encoder crashes at many units of fewer than about 2,000 weights.
SCALES = dict.fromkeys(NAMES, 128) | {"sdxl": 32, "lens": 16}
UNSCALED_COLUMNS = ".emb_layers.1.weight"
SCALES |= dict.fromkeys(("acestep15", "anima", "cosmos-t2i", "flux2", "flux2-alt", "krea2", "lumina2"), 64)


@dataclass(frozen=True)
class Case:
    """What ComfyUI holds of a source in its own dtypes, and the official file of it by either tool."""

    architecture: Architecture
    options: list[object]
    loaded: Tensors
    official: Path
    ours: Path


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest, folder: Path, df11: Path) -> Iterator[Case]:
    id_, source = MODELS[request.param]
    made = folder / request.param.replace(" ", "-")
    made.mkdir()
    if id_ == "Flux2-alt":
        without_sizes("Flux2", made)
    architecture = without_sizes(id_, made)
    scale = SCALES[request.param]
    shapes = {name: tuple(-(-(side or 0) // scale) for side in shape) for name, (_, shape) in source.items()}
    for name in (name for name in shapes if name.endswith(UNSCALED_COLUMNS)):
        shapes[name] = (shapes[name][0], source[name][1][1] or 0)
    paths = [made / f"{name}-DF11.safetensors" for name in ("official", "ours")]
    options: list[object] = ["--architectures", made]
    prefix, model = definitions.strip_prefix(source)
    # ComfyUI's name -> the source's.
    names = definitions.apply_keys(definitions.by_id()[id_], {name: (prefix + name, ()) for name in model})
    f32 = {original for name, (original, _) in names.items() if any(re.search(p, name) for p in architecture.keep_f32)}
    for seed in range(50):
        kinds = {name: "F32" if name in f32 else "BF16" for name in shapes}
        tensors = {name: random_tensor(name, kinds[name], shape, seed) for name, shape in shapes.items()}
        loaded = {name: tensors[original] for name, (original, _) in names.items()}
        try:
            compress_file(loaded, architecture.units, paths[0])
            break
        except UnboundLocalError:
            continue
    write_safetensors(made / "source.safetensors", tensors)
    compress(df11, made / "source.safetensors", paths[1], "--header", "official", "--arch", id_, *options)
    yield Case(architecture, options, loaded, *paths)


@pytest.mark.parametrize("tool", ["official", "ours"])
def test_the_model_s_tensors_again(tool: str, case: Case, df11: Path) -> None:
    path: Path = getattr(case, tool)
    report = run_json(df11, "restore", path, *case.options)
    assert (report["status"], report["exact"]) == ("done", False)
    # Which units a file has does not tell a variant of them.
    assert report["architecture"] == case.architecture.id.removesuffix("-alt")
    restored = path.with_name(f"{tool}-restored.safetensors")
    assert report["target"] == str(restored)
    found = read_safetensors(restored)
    assert found.keys() == case.loaded.keys()
    for name, tensor in case.loaded.items():
        assert found[name].equals(tensor), name
    assert read_header(restored)["__metadata__"] == {"format": "pt"}
    assert run_json(df11, "restore", path, *case.options)["status"] == "already-done"
    restored.unlink()
