"""A person compresses a model: from the template browser to the file in the list, with the mouse."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from support.comfy_server import ComfyServer

from .page import ComfyPage, until

NODE = "DFloat11Compress"
# Blocks of the model, 3.4 MB each, and megabytes a second: the run takes long enough to be watched.
BLOCKS, RATE = 12, 10
MakeModel = Callable[..., Path]
Opener = Callable[[], ComfyPage]


def assert_nothing_is_cut(page: ComfyPage, pictures: Path, name: str) -> None:
    page.show_all()
    # The page lays it out once more when it is in sight.
    until(lambda: not page.is_cut(page.card()), 10)
    page.show_all()
    for theme in ("light", "dark"):
        page.set_theme(theme)
        page.picture(pictures / f"{name}-{theme}.png")
    assert page.overlaps() == []


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
    expect(page.card()).to_contain_text(re.compile("Done: .* -> .*"))
    expect(page.message("Done: ")).to_be_visible()
    # Nobody reloaded the page or pressed a key.
    until(lambda: "model-DF11.safetensors" in page.choices(NODE, "model"))
    assert_nothing_is_cut(page, pictures, "compress-done")


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


def test_in_nodes_2(open_page: Opener, models: MakeModel, pictures: Path) -> None:
    models("model.safetensors")
    page = open_page()
    try:
        page.set_setting("Comfy.VueNodes.Enabled", True)
        page.open_template("Compress a model", nodes=3)
        page.pick_by_text(NODE, "model", "model.safetensors")
        page.run()
        expect(page.card()).to_contain_text(re.compile("Done: .* -> .*"))
        expect(page.message("Done: ")).to_be_visible()
        assert_nothing_is_cut(page, pictures, "nodes-2")
    finally:
        page.set_setting("Comfy.VueNodes.Enabled", False)


def test_a_refused_run_says_why_in_the_open(open_page: Opener, models: MakeModel, pictures: Path) -> None:
    models("model.safetensors", 1)
    page = open_page()
    page.open_template("Compress a model", nodes=3)
    page.run()
    expect(page.message("No model is picked yet")).to_be_visible()
    # It fades in.
    page.page.wait_for_timeout(1000)
    page.picture(pictures / "refused.png")


def test_a_failure_says_why_in_the_open(open_page: Opener, models: MakeModel) -> None:
    broken = models("broken.safetensors", 1)
    broken.write_bytes(broken.read_bytes()[:-1000])
    page = open_page()
    page.open_template("Compress a model", nodes=3)
    page.pick(NODE, "model", "broken.safetensors")
    page.run()
    expect(page.message("E_TRUNCATED")).to_be_visible()
