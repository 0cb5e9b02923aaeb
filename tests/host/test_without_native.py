"""A real server without the native part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comfy_client import PromptRejected
from support.comfy_server import ROOT, VERSIONS, ComfyServer

from .prompts import NODE, compress, prompt_of, sentences

NODES = {
    NODE: "DFloat11 Compress",
    "DFloat11CompressFolder": "DFloat11 Compress Folder",
    "DFloat11Inspect": "DFloat11 Inspect",
    "DFloat11Restore": "DFloat11 Restore",
    "DFloat11Verify": "DFloat11 Verify",
}


@pytest.fixture(scope="module", params=VERSIONS)
def comfy(request: pytest.FixtureRequest, scratch_root: Path) -> Iterator[ComfyServer]:
    """A server in which `import df11_native` fails."""
    hide = scratch_root / f"hide-{request.param}"
    hide.mkdir()
    (hide / "prestartup_script.py").write_text("import sys\nsys.modules['df11_native'] = None\n")
    (hide / "__init__.py").write_text("NODE_CLASS_MAPPINGS = {}\n")
    base = scratch_root / f"comfy-{request.param}-without-native"
    server = ComfyServer(request.param, base, {"dfloat11-compress": ROOT, "hide": hide})
    yield server
    server.stop()


def test_the_nodes_are_there_and_say_what_to_do(comfy: ComfyServer) -> None:
    (comfy.diffusion_models / "model.safetensors").write_bytes(b"model")
    # One line of ours and ComfyUI's line on the import time: no traceback through our files.
    ours = [line for line in comfy.log.read_text().splitlines() if "dfloat11-compress" in line]
    assert len(ours) == 2 and "The native part of DFloat11 Compress is not installed" in ours[0]
    assert "seconds:" in ours[1]
    with comfy.client() as client:
        for name, title in NODES.items():
            definition = client.object_info(name)
            assert definition["display_name"] == f"{title} (native part missing)"
            assert definition["description"].startswith("The native part of DFloat11 Compress is not installed: run ")
        assert client.object_info(NODE)["input"]["required"]["architecture"][0] == ["auto"]
        prompts = [
            compress("model.safetensors"),
            prompt_of("DFloat11CompressFolder"),
            prompt_of("DFloat11Inspect", model="model.safetensors"),
            prompt_of("DFloat11Restore", df11_model="model.safetensors"),
            prompt_of("DFloat11Verify", df11_model="model.safetensors"),
        ]
        for prompt in prompts:
            with pytest.raises(PromptRejected) as rejected:
                client.submit(prompt)
            (sentence,) = sentences(rejected.value)
            assert sentence.startswith("The native part of DFloat11 Compress is not installed: run ")
    assert "dfloat11-compress/comfy_node" not in comfy.log.read_text()
