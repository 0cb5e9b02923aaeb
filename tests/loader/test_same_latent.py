"""Our file and the official tool's file of one model sample the same latent."""

from pathlib import Path

from support.cli import compress
from support.comfy_client import ComfyClient
from support.comfy_server import ComfyServer
from support.tensors import Tensor, Tensors, read_safetensors, write_safetensors
from support.tiny_models import sampling_prompt, tiny_model


def latent(client: ComfyClient, name: str) -> str:
    """The digest of what the official loader's model samples."""
    loader = {"class_type": "TestOfficialLoader", "inputs": {"model_name": name, "architecture": "Flux"}}
    result = client.run(sampling_prompt("Flux", loader), timeout=120).require_success()
    digest: str = result.outputs["5"]["text"][0]
    return digest


def with_one_bit_changed(tensors: Tensors) -> Tensors:
    """The same but for the highest mantissa bit of one weight in a unit."""
    name = "double_blocks.0.sign_mantissa"
    values = tensors[name].array.copy()
    values[100] ^= 0x40
    return tensors | {name: Tensor("U8", values)}


def test_same_latent_from_both_files(comfy: ComfyServer, df11: Path) -> None:
    folder = comfy.diffusion_models
    source, ours, official, changed = (folder / f"latent-{n}.safetensors" for n in ("bf16", "ours", "official", "bit"))
    write_safetensors(source, tiny_model("Flux"))
    compress(df11, source, ours)
    write_safetensors(changed, with_one_bit_changed(read_safetensors(ours)))
    inputs = {"source": str(source), "target": str(official), "architecture": "Flux"}
    with comfy.client() as client:
        client.run({"1": {"class_type": "TestOfficialCompress", "inputs": inputs}}, timeout=120).require_success()
        assert ours.read_bytes() != official.read_bytes(), "the default header describes itself"
        assert latent(client, ours.name) == latent(client, official.name)
        # The digest sees a single bit of a single weight.
        assert latent(client, changed.name) != latent(client, ours.name)
    for path in (source, ours, official, changed):
        path.unlink()
