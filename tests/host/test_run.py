"""One run, a second one, and where the file is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.comfy_client import ComfyClient, Result
from support.comfy_server import ComfyServer

from .conftest import MakeModel
from .prompts import NODE, busiest_second, compress


def report(result: Result, node: str = "1") -> list[str]:
    lines: list[str] = result.outputs[node]["text"][0].splitlines()
    return lines


def listed(client: ComfyClient) -> list[str]:
    """What ComfyUI's own loader offers."""
    names: list[str] = client.object_info("UNETLoader")["input"]["required"]["unet_name"][0]
    return names


def test_progress_report_and_list(client: ComfyClient, model: MakeModel) -> None:
    source = model(blocks=6)
    assert "model-DF11.safetensors" not in listed(client)
    result = client.run(compress("model.safetensors", max_rate=4))
    assert result.status == "success"

    bar = [event.data for event in result.of_type("progress") if event.data["node"] == "1"]
    values = [data["value"] for data in bar]
    assert values == sorted(values) and len(values) > 10
    assert bar[-1]["value"] == bar[-1]["max"] >= source.stat().st_size * 0.99

    texts = [event for event in result.of_type("progress_text") if event.data["node"] == "1"]
    assert texts[-1].data["text"].startswith("Done: ")
    assert any(" left, unit " in event.data["text"] for event in texts)
    assert busiest_second(texts) <= 10 and busiest_second(result.of_type("progress")) <= 10

    assert "model-DF11.safetensors" in listed(client)
    lines = report(result)
    assert f"Written to: {source.with_name('model-DF11.safetensors')}" in lines
    assert "Name in the loader's list: model-DF11.safetensors" in lines
    assert "Load it with: DFloat11ModelLoader (pack ComfyUI-DFloat11-Extended, installed here)" in lines


def test_a_second_run_does_nothing_again(client: ComfyClient, model: MakeModel) -> None:
    target = model().with_name("model-DF11.safetensors")
    prompt = compress("model.safetensors")
    client.run(prompt)
    written = target.stat().st_mtime_ns
    # The same node: ComfyUI's cache answers, although the first run made the file only afterwards.
    assert client.run(prompt).of_type("execution_cached")[0].data["nodes"] == ["1"]
    # The file has gone: the cache must not answer, but does again after that.
    target.unlink()
    assert client.run(prompt).of_type("execution_cached")[0].data["nodes"] == []
    assert target.stat().st_mtime_ns > written
    assert client.run(prompt).of_type("execution_cached")[0].data["nodes"] == ["1"]
    # Another node: the cache knows nothing of it, the file itself does.
    written = target.stat().st_mtime_ns
    started = time.monotonic()
    other = client.run(compress("model.safetensors", node="2"))
    assert report(other, "2")[0].startswith("Already done: ")
    assert time.monotonic() - started < 1
    assert target.stat().st_mtime_ns == written


def test_an_official_file_is_skipped_too(client: ComfyClient, model: MakeModel) -> None:
    model()
    for node, start in (("1", "Done: "), ("2", "Already done: ")):
        result = client.run(compress("model.safetensors", node=node, header="official"))
        assert report(result, node)[0].startswith(start)


def test_beside_a_link_in_a_subfolder_with_any_name(client: ComfyClient, model: MakeModel, scratch: Path) -> None:
    original = model("tmp.safetensors")
    blob = scratch / "blob"
    original.rename(blob)
    link = original.parent / "m\u00f6delle \u6a21\u578b" / "a b.safetensors"
    link.parent.mkdir()
    link.symlink_to(blob)
    name = os.path.join(link.parent.name, "a b-DF11.safetensors")
    # A workflow from Windows has the other separator.
    lines = report(client.run(compress(f"{link.parent.name}\\{link.name}")))
    assert f"Name in the loader's list: {name}" in lines
    assert link.with_name("a b-DF11.safetensors").is_file() and name in listed(client)


def test_a_checkpoint_goes_to_the_diffusion_models(client: ComfyClient, comfy: ComfyServer, model: MakeModel) -> None:
    model("sub/all.safetensors", kind="checkpoints")
    assert "checkpoints/sub/all.safetensors" in client.object_info(NODE)["input"]["required"]["model"][0]
    client.run(compress("checkpoints/sub/all.safetensors"))
    assert (comfy.diffusion_models / "all-DF11.safetensors").is_file()
