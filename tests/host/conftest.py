"""Fixtures: a websocket session, and models in the server's folders that are gone after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.comfy_client import ComfyClient
from support.comfy_server import ComfyServer
from support.tensors import write_safetensors
from support.tiny_models import tiny_model

MakeModel = Callable[..., Path]


@pytest.fixture
def client(comfy: ComfyServer) -> Iterator[ComfyClient]:
    with comfy.client() as session:
        yield session


@pytest.fixture
def model(comfy: ComfyServer) -> Iterator[MakeModel]:
    """Writes a small Flux checkpoint, by default `model.safetensors` in diffusion_models: 2 MB and 1.7 MB a block."""
    folders = [comfy.diffusion_models, comfy.base / "models" / "checkpoints", comfy.base / "output"]
    before = {path for folder in folders for path in folder.rglob("*")}

    def make(name: str = "model.safetensors", *, kind: str = "diffusion_models", blocks: int = 1) -> Path:
        path = comfy.base / "models" / kind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_safetensors(path, tiny_model("Flux", double=blocks, single=blocks))
        return path

    yield make
    made = {path for folder in folders for path in folder.rglob("*")} - before
    for path in sorted(made, reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
