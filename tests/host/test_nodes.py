"""The other nodes: what they show, that Stop ends them, what they say of wrong files."""

from __future__ import annotations

import time
import urllib.parse
import urllib.request

import pytest

from support.comfy_client import ComfyClient, Event, Result
from support.comfy_server import ComfyServer

from .conftest import MakeModel
from .prompts import busiest_second, compress, prompt_of
from .test_run import listed, report

DF11 = "model-DF11.safetensors"


def sentence(result: Result) -> str:
    """What a failed prompt says."""
    (error,) = result.of_type("execution_error")
    text: str = error.data["exception_message"].strip()
    assert result.of_type("progress_text")[-1].data["text"] == text
    return text


def picture(comfy: ComfyServer, result: Result) -> bytes:
    """The picture on node 1, as a browser gets it."""
    (image,) = result.outputs["1"]["images"]
    assert image["type"] == "temp"
    with urllib.request.urlopen(f"http://{comfy.address}/view?{urllib.parse.urlencode(image)}", timeout=30) as answer:
        assert answer.headers["Content-Type"] == "image/png"
        content: bytes = answer.read()
    return content


def test_inspect_before_and_after(client: ComfyClient, model: MakeModel) -> None:
    source = model()
    lines = report(client.run(prompt_of("DFloat11Inspect", model=source.name)))
    assert lines[0].startswith("Can be compressed: 2 MB -> about 2 MB (26 % smaller)")
    assert lines[2] == "Tensors by type: BF16 52 (2 MB)"
    assert f"Would be written to: {source.with_name(DF11)}" in lines
    assert "Load it with: DFloat11ModelLoader (pack ComfyUI-DFloat11-Extended, installed here)" in lines
    client.run(compress(source.name))
    lines = report(client.run(prompt_of("DFloat11Inspect", model=DF11)))
    assert lines[0].startswith("Already a DFloat11 file: 2 MB, 10.8")
    assert "Exactly restorable: yes, byte for byte with DFloat11 Restore" in lines


def test_inspect_names_every_reason(client: ComfyClient, model: MakeModel) -> None:
    model().write_bytes(b"<!doctype html><html>not found</html>")
    lines = report(client.run(prompt_of("DFloat11Inspect", model="model.safetensors")).require_success())
    assert lines[:2] == ["Would be refused: 1 reason", "File: model.safetensors"]
    assert lines[2].endswith("[E_NOT_SAFETENSORS]")
    model("sub/other.safetensors")
    result = client.run(prompt_of("DFloat11Inspect", model="sub/other.safetensors", architecture="Anima"))
    lines = report(result.require_success())
    assert lines[0] == "Would be refused: 1 reason" and lines[-1].endswith("[E_ARCH_CONTRADICTION]")


def test_verify_with_the_source_and_a_damaged_file(client: ComfyClient, model: MakeModel) -> None:
    source = model()
    client.run(compress(source.name))
    prompt = prompt_of("DFloat11Verify", df11_model=DF11, source=source.name)
    result = client.run(prompt).require_success()
    lines = report(result)
    assert lines[0].startswith("Sound at level full: ") and f"Compared with: {source.name}" in lines
    assert "Checked: the decoded weights, bit for bit against the source" in lines
    assert result.of_type("progress")[-1].data["value"] == result.of_type("progress")[-1].data["max"]
    assert client.run(prompt).of_type("execution_cached")[0].data["nodes"] == ["1"]
    damaged = source.with_name(DF11)
    content = bytearray(damaged.read_bytes())
    content[len(content) * 3 // 4] ^= 1
    damaged.write_bytes(content)
    text = sentence(client.run(prompt))
    assert text.startswith(f"{DF11}: ") and text.endswith("[E_VERIFY]")
    assert sentence(client.run(prompt_of("DFloat11Verify", df11_model=source.name))).endswith("[E_NOT_DF11]")


def test_restore_and_what_it_refuses(client: ComfyClient, model: MakeModel) -> None:
    source = model("sub/model.safetensors")
    original = source.read_bytes()
    client.run(compress("sub/model.safetensors"))
    prompt = prompt_of("DFloat11Restore", df11_model=f"sub/{DF11}")
    assert report(client.run(prompt))[0].startswith("Already done: ")
    source.unlink()
    lines = report(client.run(prompt).require_success())
    assert source.read_bytes() == original and "sub/model.safetensors" in listed(client)
    assert lines[0].startswith("Done: ")
    assert lines[1] == "Restored: the file that was compressed, byte for byte"
    source.write_bytes(b"something dear")
    text = sentence(client.run(prompt_of("DFloat11Restore", "2", df11_model=f"sub/{DF11}")))
    assert text.endswith("[E_TARGET_EXISTS]") and source.read_bytes() == b"something dear"
    assert client.run(prompt_of("DFloat11Restore", df11_model=f"sub/{DF11}", output_name="new")).status == "success"
    assert source.with_name("new.safetensors").read_bytes() == original
    assert sentence(client.run(prompt_of("DFloat11Restore", df11_model="sub/new.safetensors"))).endswith("[E_NOT_DF11]")


def test_a_folder(comfy: ComfyServer, client: ComfyClient, model: MakeModel) -> None:
    for name in ("a.safetensors", "b.safetensors", "sub/c.safetensors"):
        model(name)
    model("web page.safetensors").write_bytes(b"<!doctype html>")
    result = client.run(prompt_of("DFloat11CompressFolder")).require_success()
    lines = report(result)
    assert lines[0].startswith("3 compressed (6 MB -> ") and lines[0].endswith(", 1 refused")
    assert [line.split(" | ")[0] for line in lines[4:7]] == [
        "| a.safetensors",
        "| b.safetensors",
        "| sub/c.safetensors",
    ]
    assert any(line.startswith("Refused: web page.safetensors: ") for line in lines)
    bar = [event.data for event in result.of_type("progress")]
    assert bar[-1]["value"] == bar[-1]["max"] and [d["value"] for d in bar] == sorted(d["value"] for d in bar)
    assert {"a-DF11.safetensors", "b-DF11.safetensors", "sub/c-DF11.safetensors"} <= set(listed(client))
    assert picture(comfy, result).startswith(b"\x89PNG")
    again = report(client.run(prompt_of("DFloat11CompressFolder", pattern="[ab].*")))
    assert again[0] == "0 compressed, 2 done before"


def test_stop_in_a_folder_keeps_what_is_finished(client: ComfyClient, model: MakeModel) -> None:
    source = model("a.safetensors", blocks=2)
    model("b.safetensors", blocks=2)
    prompt = client.submit(prompt_of("DFloat11CompressFolder", max_rate=1))

    def in_the_second(event: Event) -> bool:
        return event.type == "progress" and event.data["value"] > event.data["max"] * 0.6

    client.wait_for(in_the_second)
    pressed = time.monotonic()
    client.interrupt()
    stopped = client.wait_for(lambda event: event.type == "execution_interrupted")
    assert stopped.time - pressed < 1
    result = client.finish(prompt)
    assert not result.of_type("execution_success") and not result.of_type("execution_error")
    assert sorted(path.name for path in source.parent.glob("[ab]*")) == [
        "a-DF11.safetensors", "a.safetensors", "b.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["DFloat11Verify", "DFloat11Restore"])
def test_stop(client: ComfyClient, model: MakeModel, kind: str) -> None:
    source = model(blocks=100)
    client.run(compress(source.name), timeout=200).require_success()
    if kind == "DFloat11Restore":
        source.unlink()
    before = sorted(source.parent.iterdir())
    prompt = client.submit(prompt_of(kind, df11_model=DF11, threads=1))

    def at_work(event: Event) -> bool:
        data = event.data
        return event.type == "progress" and data["prompt_id"] == prompt and 0 < data["value"] < data["max"]

    client.wait_for(at_work)
    pressed = time.monotonic()
    client.interrupt()
    stopped = client.wait_for(lambda event: event.type == "execution_interrupted")
    print(f"{kind} stopped {stopped.time - pressed:.2f} s after the button was pressed")
    assert stopped.time - pressed < 1
    result = client.finish(prompt)
    assert not result.of_type("execution_success") and not result.of_type("execution_error")
    assert result.of_type("progress_text")[-1].data["text"] == "Stopped."
    assert sorted(source.parent.iterdir()) == before


def test_the_picture_of_one_model(comfy: ComfyServer, client: ComfyClient, model: MakeModel) -> None:
    model(blocks=3)
    first = picture(comfy, client.run(compress("model.safetensors")))
    assert first.startswith(b"\x89PNG")
    # From the cache, and of a result that was there already.
    cached = client.run(compress("model.safetensors"))
    assert picture(comfy, cached) == first
    skipped = client.run(compress("model.safetensors", verify="off"))
    assert report(skipped)[0].startswith("Already done: ") and picture(comfy, skipped).startswith(b"\x89PNG")


def test_the_console_has_few_lines(comfy: ComfyServer, client: ComfyClient, model: MakeModel) -> None:
    model(blocks=2)
    logged = len(comfy.log.read_text())
    result = client.run(compress("model.safetensors", max_rate=1))
    assert busiest_second(result.of_type("progress")) <= 10
    lines = [line for line in comfy.log.read_text()[logged:].splitlines() if "DFloat11 Compress: " in line]
    assert lines[0].endswith("DFloat11 Compress: model.safetensors, 4 MB ...")
    assert "DFloat11 Compress: Done: " in lines[-1]
    assert len(lines) == 2, "a line in between every ten seconds; this run takes four"
