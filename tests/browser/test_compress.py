"""A person compresses a model: from the template browser to the file in the list, with the mouse."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from support.comfy_server import ComfyServer

from .page import SECONDS, ComfyPage

NODE = "DFloat11Compress"
# Blocks of the model, 3.4 MB each, and megabytes a second: the run takes long enough to be watched.
BLOCKS, RATE = 12, 10
MakeModel = Callable[..., Path]
Opener = Callable[[], ComfyPage]


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_from_the_template_to_the_list(open_page: Opener, models: MakeModel, pictures: Path) -> None:
    models("model.safetensors", BLOCKS)
    page = open_page()
    page.open_template("Compress a model", nodes=3)
    assert page.unknown_nodes() == []
    page.pick(NODE, "model", "model.safetensors")
    page.set(NODE, "max_rate", RATE)
    page.run()
    seen = set[float]()
    until(lambda: bool(seen.add(page.progress(NODE)) or len(seen) > 5))
    page.picture(pictures / "compress-running.png")
    expect(page.card()).to_contain_text(re.compile("Done: .* -> .*"), timeout=60 * SECONDS)
    expect(page.message("Done: ")).to_be_visible()
    # Nobody reloaded the page or pressed a key.
    until(lambda: "model-DF11.safetensors" in page.choices(NODE, "model"))
    page.show_all()
    # The page lays it out once more when it is in sight.
    until(lambda: not page.is_cut(page.card()), 10)
    for theme in ("light", "dark"):
        page.set_theme(theme)
        page.picture(pictures / f"compress-done-{theme}.png")
    assert page.overlaps() == []


def test_stop(open_page: Opener, models: MakeModel, comfy: ComfyServer) -> None:
    model = models("model.safetensors", BLOCKS)
    page = open_page()
    page.open_template("Compress a model", nodes=3)
    page.pick(NODE, "model", "model.safetensors")
    page.set(NODE, "max_rate", 2)
    page.run()
    until(lambda: page.progress(NODE) > 0)
    page.stop()
    with comfy.client() as client:
        until(lambda: not client.request("/queue")["queue_running"], 5)
    assert [path.name for path in model.parent.iterdir()] == ["model.safetensors"]


def test_a_failure_says_why_in_the_open(open_page: Opener, models: MakeModel) -> None:
    broken = models("broken.safetensors", 1)
    broken.write_bytes(broken.read_bytes()[:-1000])
    page = open_page()
    page.open_template("Compress a model", nodes=3)
    page.pick(NODE, "model", "broken.safetensors")
    page.run()
    expect(page.message("E_TRUNCATED")).to_be_visible()
