"""A checkpoint restored from an official file: ComfyUI's own loader takes it, and samples as from the original."""

from pathlib import Path

import numpy as np
import pytest

from loader.test_comfyui import one_node, run, with_f32
from support.cli import compress, run_json
from support.comfy_client import ComfyClient
from support.comfy_server import ComfyServer
from support.tensors import Tensor, Tensors, bf16, read_safetensors, to_f32, write_safetensors
from support.tiny_models import TINY_MODELS, sampling_prompt, tiny_model


def latent(client: ComfyClient, architecture: str, path: Path) -> str:
    """The digest of what ComfyUI's own loader's model samples."""
    loader = {"class_type": "UNETLoader", "inputs": {"unet_name": path.name, "weight_dtype": "default"}}
    digest: str = run(client, sampling_prompt(architecture, loader)).outputs["5"]["text"][0]
    return digest


def with_one_bit_changed(tensors: Tensors) -> Tensors:
    """The same but for the highest mantissa bit of one compressed weight."""
    name = "double_blocks.0.img_attn.qkv.weight"
    values = tensors[name].array.copy()
    values.flat[100] ^= np.uint16(0x40)
    return tensors | {name: Tensor("BF16", values)}


@pytest.mark.parametrize("architecture", TINY_MODELS)
@pytest.mark.parametrize("others", ["bf16", "f32"])
def test_same_latent_as_the_original(
    architecture: str, others: str, comfy: ComfyServer, df11: Path, scratch: Path
) -> None:
    folder = comfy.diffusion_models
    original, changed = folder / "original.safetensors", folder / "changed.safetensors"
    tensors = tiny_model(architecture)
    if others == "f32":
        # The official tool rounds what is not compressed: the original's twin is rounded too.
        tensors = with_f32(tensors)
    source = scratch / "source.safetensors"
    write_safetensors(source, tensors)
    write_safetensors(original, {name: bf16(to_f32(tensor)) for name, tensor in tensors.items()})
    official, ours = scratch / "official-DF11.safetensors", scratch / "ours-DF11.safetensors"
    compress(df11, source, ours, "--header", "official")
    with comfy.client() as client:
        run(client, one_node("TestOfficialCompress", source=source, target=official, architecture=architecture))
        expected = latent(client, architecture, original)
        for path in (official, ours):
            restored = folder / f"{path.stem}-restored.safetensors"
            report = run_json(df11, "restore", path, "-o", restored)
            assert (report["architecture"], report["exact"]) == (architecture, False)
            assert latent(client, architecture, restored) == expected
        # The digest sees a single bit of a single weight.
        write_safetensors(changed, with_one_bit_changed(read_safetensors(restored)))
        assert latent(client, architecture, changed) != expected
    for path in folder.glob("*.safetensors"):
        path.unlink()
