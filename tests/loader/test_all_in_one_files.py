"""The official node's route on files that hold more than the diffusion model; test_comfyui.py has the others."""

from pathlib import Path

import numpy as np
import pytest

from support.cli import compress
from support.comfy_server import ComfyServer
from support.synthetic import random_tensor
from support.tensors import Tensor, Tensors, write_safetensors
from support.tiny_models import TINY_MODELS, tiny_model

PREFIX = "model.diffusion_model."
FOREIGN: Tensors = {
    "vae.decoder.conv_in.weight": random_tensor("conv_in", "F32", (8, 4, 3, 3), 0),
    "text_encoders.t5xxl.transformer.shared.weight": random_tensor("shared", "F16", (24, 20), 0),
    "text_encoders.t5xxl.logit_scale": Tensor("F16", np.array(4.5, "<f2")),
    # Begins like the prefix, names a module of the model, and belongs to neither.
    "model.img_in.weight": random_tensor("img_in", "BF16", (24, 20), 0),
    "model_ema.decay": Tensor("F32", np.array(0.5, "<f4")),
    # A quantised text encoder beside a BF16 model.
    "text_encoders.clip_l.transformer.proj.weight": Tensor("F8_E4M3", np.arange(24, dtype="|u1").reshape(4, 6)),
    "text_encoders.clip_l.transformer.proj.scale_weight": Tensor("F32", np.array(0.5, "<f4")),
}


@pytest.mark.parametrize("architecture", TINY_MODELS)
def test_the_rest_of_the_file_stays_out(architecture: str, comfy: ComfyServer, df11: Path, scratch: Path) -> None:
    source, official, ours = (scratch / f"{name}.safetensors" for name in ("source", "official", "ours"))
    model = {PREFIX + name: tensor for name, tensor in tiny_model(architecture).items()}
    write_safetensors(source, FOREIGN | model)
    inputs = {"source": str(source), "target": str(official), "architecture": architecture}
    with comfy.client() as client:
        client.run({"1": {"class_type": "TestOfficialCompress", "inputs": inputs}}, timeout=120).require_success()
    compress(df11, source, ours, "--header", "official")
    assert ours.read_bytes() == official.read_bytes()
