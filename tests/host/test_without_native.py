"""A real server without the native part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comfy_client import PromptRejected
from support.comfy_server import ROOT, VERSIONS, ComfyServer

from .prompts import NODE, compress, sentences


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


def test_the_node_is_there_and_says_what_to_do(comfy: ComfyServer) -> None:
    (comfy.diffusion_models / "model.safetensors").write_bytes(b"model")
    # One line of ours and ComfyUI's line on the import time: no traceback through our files.
    ours = [line for line in comfy.log.read_text().splitlines() if "dfloat11-compress" in line]
    assert len(ours) == 2 and "The native part of DFloat11 Compress is not installed" in ours[0]
    assert "seconds:" in ours[1]
    with comfy.client() as client:
        definition = client.object_info(NODE)
        assert definition["display_name"] == "DFloat11 Compress (native part missing)"
        assert definition["description"].startswith("The native part of DFloat11 Compress is not installed: run ")
        assert definition["input"]["required"]["architecture"][0] == ["auto"]
        with pytest.raises(PromptRejected) as rejected:
            client.submit(compress("model.safetensors"))
    (sentence,) = sentences(rejected.value)
    assert sentence.startswith("The native part of DFloat11 Compress is not installed: run ")
    assert "dfloat11-compress/comfy_node" not in comfy.log.read_text()
