"""Names and shapes that our files have are those of ComfyUI's classes, for models too large to build here."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from architectures import headers, name_sets
from architectures.headers import Tensors
from support.comfy_server import ComfyServer
from support.official import UNIT_FIELDS

NEWEST = "0.30.0"
# Of later ComfyUI versions.
NOT_YET = {"qwen-image21"}
PUBLISHED = [name for name in headers.names() if name not in NOT_YET]
# Architectures without a published header among the fixtures: ComfyUI's class gives the source's names too.
OTHERS = ["flux-dev", "longcat", "cosmos-t2i", "z-image-pixel-space", "krea2", "lens"]
# What ComfyUI's detection reads besides.
DETECTED_BY: dict[str, Tensors] = {
    "z-image-pixel-space": {"dec_net.input_embedder.embedder.0.weight": ("BF16", (3840, 768 + 64))},
    "lens": {"proj_out.weight": ("BF16", (128, 1536)), "txt_norm.weight": ("BF16", (4096,))},
}
# In the published file and its release, and in older ComfyUI; the loader prints a message and goes on.
ORPHANS = {"lumina2": {"norm_final.weight"}}


class Models:
    """What a ComfyUI server and `df11 inspect` make of a source of which only the header is known."""

    def __init__(self, server: ComfyServer, df11: Path, folder: Path) -> None:
        self.server = server
        self.df11 = df11
        self.source = folder / "source.safetensors"
        self.answer = folder / "answer.json"

    def write(self, tensors: Tensors) -> None:
        headers.write_sparse(self.source, headers.in_file_order(tensors))

    def comfy(self, device: str = "meta") -> dict[str, Any]:
        inputs = {"source": str(self.source), "target": str(self.answer), "device": device}
        with self.server.client() as client:
            client.run({"1": {"class_type": "TestModelNames", "inputs": inputs}}).require_success()
        return json.loads(self.answer.read_text())

    def inspect(self) -> dict[str, Any]:
        command = [str(self.df11), "inspect", "--json", "--header", "official", str(self.source)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def models(start_comfy: Callable[[str], ComfyServer], df11: Path, scratch: Path) -> Models:
    return Models(start_comfy(NEWEST), df11, scratch)


def assert_same_names(comfy: dict[str, Any], report: dict[str, Any], orphans: set[str]) -> None:
    """All that is not in a unit has ComfyUI's name and shape; what ComfyUI has besides is in a unit."""
    fields = {f"{unit['name']}.{field}" for unit in report["units"] for field in UNIT_FIELDS}
    ours = {tensor["name"]: tensor["shape"] for tensor in report["tensors"]}
    assert fields <= ours.keys()
    plain = {name: shape for name, shape in ours.items() if name not in fields and name not in orphans}
    members = {name.removeprefix(report["prefix"]) for unit in report["units"] for name in unit["tensors"]}
    assert members <= comfy["tensors"].keys()
    assert plain == {name: shape for name, shape in comfy["tensors"].items() if name not in members}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_source(name: str, models: Models) -> None:
    models.write(headers.load(name).source.tensors)
    # ACE-Step's quantizer computes with a value when it is made. Weights that nobody writes take no memory on the CPU.
    comfy = models.comfy("cpu" if name == "acestep15" else "meta")
    assert_same_names(comfy, models.inspect(), ORPHANS.get(name, set()))


@pytest.mark.parametrize("name", OTHERS)
def test_source_with_the_names_of_the_class(name: str, models: Models) -> None:
    architecture, tensors = name_sets.relatives()[name]
    models.write(tensors | DETECTED_BY.get(name, {}))
    comfy = models.comfy()
    assert comfy["class"] == architecture
    models.write({key: ("BF16", tuple(shape)) for key, shape in comfy["tensors"].items()})
    report = models.inspect()
    assert report["architecture"] == architecture
    assert_same_names(comfy, report, set())
