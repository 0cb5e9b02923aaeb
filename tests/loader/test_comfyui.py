"""The official node's own route, and the official loader on our files, in real ComfyUI servers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.architectures import all_architectures
from support.cli import compress
from support.comfy_client import ComfyClient, Prompt, Result
from support.comfy_server import ComfyServer
from support.tensors import Tensor, Tensors, to_f32, write_safetensors
from support.tiny_models import TINY_MODELS, sampling_prompt, tiny_model

ARCHITECTURES = all_architectures()
PREFIX = "model.diffusion_model."
# The newer name of the norms, without anything else; and what all-in-one files look like.
SOURCES = {
    "plain": lambda name: tiny_model(name, norm="weight", double=2),
    "decorated": lambda name: with_f32({PREFIX + key: tensor for key, tensor in tiny_model(name).items()}),
}


def with_f32(tensors: Mapping[str, Tensor]) -> Tensors:
    """The same with every second tensor outside the units in F32, its values between those of BF16."""
    result = dict(tensors)
    plain = [name for name, tensor in tensors.items() if len(tensor.shape) == 1]
    for name in plain[::2]:
        result[name] = Tensor("F32", (to_f32(tensors[name]) * 1.001).astype("<f4"))
    return result


def run(client: ComfyClient, prompt: Prompt) -> Result:
    return client.run(prompt, timeout=120).require_success()


def one_node(kind: str, **inputs: object) -> Prompt:
    return {"1": {"class_type": kind, "inputs": {key: str(value) for key, value in inputs.items()}}}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("architecture", TINY_MODELS)
def test_official_route_gives_our_bytes(
    architecture: str, kind: str, comfy: ComfyServer, df11: Path, scratch: Path
) -> None:
    source, official, ours = (scratch / f"{name}.safetensors" for name in ("source", "official", "ours"))
    write_safetensors(source, SOURCES[kind](architecture))
    with comfy.client() as client:
        run(client, one_node("TestOfficialCompress", source=source, target=official, architecture=architecture))
    report = compress(df11, source, ours, "--header", "official")
    assert report["architecture"] == architecture
    assert ours.read_bytes() == official.read_bytes()


@pytest.mark.parametrize("architecture", TINY_MODELS)
def test_official_loader_fills_the_model(architecture: str, comfy: ComfyServer, df11: Path, scratch: Path) -> None:
    """Nothing is unfilled, and every weight and parameter has the source's bits, as ComfyUI loads it."""
    source, ours = scratch / "source.safetensors", scratch / "ours.safetensors"
    tensors = with_f32(tiny_model(architecture))
    write_safetensors(source, tensors)
    report = compress(df11, source, ours)
    with comfy.client() as client:
        check = one_node("TestOfficialCheck", source=source, target=ours, architecture=architecture)
        compared = run(client, check).outputs["1"]["text"]
    members = sum(len(ARCHITECTURES[architecture].unit_weights(unit["name"])) for unit in report["units"])
    assert compared == [f"{members} {len(tensors)}"]


@pytest.mark.parametrize("architecture", TINY_MODELS)
def test_our_file_samples_like_its_source(architecture: str, comfy: ComfyServer, df11: Path) -> None:
    source = comfy.diffusion_models / f"{architecture}.safetensors"
    ours = comfy.diffusion_models / f"{architecture}-DF11.safetensors"
    write_safetensors(source, tiny_model(architecture))
    compress(df11, source, ours)
    loaders = [
        {"class_type": "UNETLoader", "inputs": {"unet_name": source.name, "weight_dtype": "default"}},
        {"class_type": "TestOfficialLoader", "inputs": {"model_name": ours.name, "architecture": architecture}},
    ]
    with comfy.client() as client:
        latents = [run(client, sampling_prompt(architecture, loader)).outputs["5"] for loader in loaders]
    assert latents[0] == latents[1]
    source.unlink()
    ours.unlink()
