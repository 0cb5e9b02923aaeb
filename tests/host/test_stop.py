"""The Stop button in the middle of a job."""

from __future__ import annotations

import time

from support.comfy_client import ComfyClient, Event

from .conftest import MakeModel
from .prompts import compress


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
