"""The server stays quick while every core compresses."""

from __future__ import annotations

import statistics
import time

from support.comfy_client import ComfyClient

from .conftest import MakeModel
from .prompts import compress

REQUESTS = 50
PATHS = ("/queue", "/system_stats", "/prompt", "/object_info/DFloat11Compress")


def times(client: ComfyClient) -> list[float]:
    """Seconds that each of the requests takes."""
    measured = []
    for index in range(REQUESTS):
        started = time.monotonic()
        client.request(PATHS[index % len(PATHS)])
        measured.append(time.monotonic() - started)
        time.sleep(0.01)
    return measured


def words(measured: list[float]) -> str:
    return f"median {1000 * statistics.median(measured):.1f} ms, longest {1000 * max(measured):.1f} ms"


def test_fifty_requests_during_a_job(client: ComfyClient, model: MakeModel) -> None:
    model(blocks=20)
    idle = times(client)
    prompt = {}
    for node in range(1, 13):
        prompt |= compress("model.safetensors", node=str(node), output_name=f"model-{node}")
    job = client.submit(prompt)
    client.wait_for(lambda event: event.type == "progress")
    busy = times(client)
    done = time.monotonic()
    result = client.finish(job)
    assert result.of_type("execution_success")[0].time > done, "the job ended before the requests"
    print(f"{REQUESTS} requests: idle {words(idle)}; during a job {words(busy)}")
    assert statistics.median(busy) < 0.1 and max(busy) < 1
