"""A ComfyUI server is killed in the middle of a job, started again, and gets the job again.

It goes on and ends with the file of an undisturbed one.
"""

import random
import time
from pathlib import Path

import pytest

from support.comfy_server import ROOT, VERSIONS, ComfyServer
from support.tensors import write_safetensors
from support.tiny_models import tiny_model

from .conftest import Length

PROMPT = {
    "1": {
        "class_type": "DFloat11Compress",
        "inputs": {
            "model": "model.safetensors", "architecture": "auto", "output_name": "", "header": "self-describing",
            "verify": "full", "if_exists": "skip",
        },
    }
}  # fmt: skip
NAMES = ["model-DF11.safetensors", "model.safetensors"]


def start(base: Path) -> ComfyServer:
    return ComfyServer(VERSIONS[0], base, {"dfloat11-compress": ROOT})


def report(server: ComfyServer) -> str:
    with server.client() as client:
        return str(client.run(PROMPT, timeout=120).require_success().outputs)


def test_a_server_that_is_killed(scratch: Path, rng: random.Random, length: Length) -> None:
    if not length.servers:
        pytest.skip("SKIP a server's start takes 15 s: only with STRESS_FULL=1")
    base = scratch / "comfy"
    server = start(base)
    resumed = 0
    try:
        source = server.diffusion_models / "model.safetensors"
        write_safetensors(source, tiny_model("Flux", double=12, single=12))
        target = source.with_name("model-DF11.safetensors")
        report(server)
        undisturbed = target.read_bytes()
        target.unlink()
        partial = target.with_name(target.name + ".partial")
        for _ in range(length.servers):
            slow = {"1": PROMPT["1"] | {"inputs": PROMPT["1"]["inputs"] | {"max_rate": 10}}}
            with server.client() as client:
                client.submit(slow)
                deadline = time.monotonic() + 30
                while not partial.exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
                time.sleep(rng.uniform(0, 2))
                server.kill()
            server = start(base)
            resumed += "went on from an interrupted run" in report(server)
            assert sorted(path.name for path in source.parent.iterdir()) == NAMES
            assert target.read_bytes() == undisturbed
            target.unlink()
    finally:
        server.stop()
    print(f"{resumed} of {length.servers} jobs went on")
    assert resumed > length.servers // 2
