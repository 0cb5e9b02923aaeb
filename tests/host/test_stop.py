"""The Stop button in the middle of a job."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from support.cli import compress as pack
from support.comfy_client import ComfyClient, Event
from support.comfy_server import ROOT, VERSIONS, ComfyServer
from support.faults import Faults
from support.tensors import write_safetensors
from support.tiny_models import tiny_model

from .conftest import MakeModel
from .prompts import compress, prompt_of

MODELS_OF = {
    "DFloat11Compress": {"model": "model.safetensors"},
    "DFloat11CompressFolder": {},
    "DFloat11Inspect": {"model": "model.safetensors"},
    "DFloat11Verify": {"df11_model": "model-DF11.safetensors"},
    "DFloat11Restore": {"df11_model": "model-DF11.safetensors", "output_name": "again"},
}


def test_stop_half_way_leaves_nothing_and_the_next_run_works(client: ComfyClient, model: MakeModel) -> None:
    source = model(blocks=7)
    assert source.stat().st_size > 11_000_000, "at 1 MB/s the job must take at least 10 s"
    prompt = client.submit(compress("model.safetensors", max_rate=1))

    def half_way(event: Event) -> bool:
        return event.type == "progress" and event.data["value"] >= event.data["max"] / 2

    client.wait_for(half_way)
    pressed = time.monotonic()
    client.interrupt()
    stopped = client.wait_for(lambda event: event.type == "execution_interrupted")
    print(f"stopped {stopped.time - pressed:.2f} s after the button was pressed")
    assert stopped.time - pressed < 1
    result = client.finish(prompt)
    assert not result.of_type("execution_success") and not result.of_type("execution_error")
    assert not result.outputs
    assert result.of_type("progress_text")[-1].data["text"] == "Stopped."
    assert sorted(path.name for path in source.parent.glob("model*")) == ["model.safetensors"]

    assert client.run(compress("model.safetensors")).status == "success"


def tells(prompt: str, kind: str, event: Event) -> bool:
    return event.type == kind and event.data["prompt_id"] == prompt


def test_stop_while_a_disk_does_not_answer(scratch: Path, df11: Path) -> None:
    """Every node looks into its file before it has a job: here each read takes 4 s."""
    base = scratch / "comfy"
    folder = base / "models" / "diffusion_models"
    folder.mkdir(parents=True)
    write_safetensors(folder / "model.safetensors", tiny_model("Flux", double=1, single=1))
    pack(df11, folder / "model.safetensors", folder / "model-DF11.safetensors")
    there = sorted(folder.iterdir())
    variables = Faults.build(scratch, folder).environment("read:*:4000ms")
    server = ComfyServer(VERSIONS[0], base, {"dfloat11-compress": ROOT}, variables=variables)
    try:
        with server.client() as client:
            for kind, widgets in MODELS_OF.items():
                prompt = client.submit(prompt_of(kind, **widgets))
                client.wait_for(partial(tells, prompt, "executing"))
                time.sleep(0.5)
                pressed = time.monotonic()
                client.interrupt()
                stopped = client.wait_for(partial(tells, prompt, "execution_interrupted"))
                print(f"{kind}: stopped {stopped.time - pressed:.2f} s after the button was pressed")
                assert stopped.time - pressed < 1
                assert client.finish(prompt).of_type("progress_text")[-1].data["text"] == "Stopped."
            # What the calls give in the end is of no effect.
            time.sleep(10)
            assert sorted(folder.iterdir()) == there
    finally:
        server.stop()
