"""Every workflow of the pack, opened from the template browser and run with the mouse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from support.comfy_server import ROOT, ComfyServer

from .page import ComfyPage, until

MODEL, DF11 = "model.safetensors", "model-DF11.safetensors"


@dataclass(frozen=True)
class Run:
    """What a person does with a template, and sees."""

    node: str
    shown: str
    """How the report begins."""
    widget: str = "model"
    picked: str = MODEL
    """Empty: nothing needs to be picked."""
    without: str = ""
    """A file that is not there any more."""


RUNS = {
    "Compress a folder": Run("DFloat11CompressFolder", "1 compressed (", picked=""),
    "Compress a model": Run("DFloat11Compress", "Done: ", without=DF11),
    "Compress and load": Run("DFloat11Compress", "Done: ", without=DF11),
    "Look before compressing": Run("DFloat11Inspect", "Can be compressed: "),
    "Restore a model": Run("DFloat11Restore", "Done: ", "df11_model", DF11, without=MODEL),
    "Verify a file": Run("DFloat11Verify", "Sound at level full: ", "df11_model", DF11),
}


def status(comfy: ComfyServer) -> str:
    """How the newest run ended; empty while one is going on."""
    with comfy.client() as client:
        queue = client.request("/queue")
        if queue["queue_running"] or queue["queue_pending"]:
            return ""
        (newest,) = client.request("/history?max_items=1").values()
        return str(newest["status"]["status_str"])


# Six templates in a browser on two busy cores.
@pytest.mark.timeout(600)
def test_each_opens_and_runs(
    open_page: Callable[[], ComfyPage], models: Callable[..., Path], comfy: ComfyServer, pictures: Path
) -> None:
    folder = models(MODEL).parent
    page = open_page()
    assert {path.stem for path in (ROOT / "workflows").glob("*.json")} == set(RUNS)
    for name, run in RUNS.items():
        if run.without:
            (folder / run.without).unlink()
        # Where the browser of templates opened by itself, it would be in the way of its own button.
        page.page.keyboard.press("Escape")
        page.open_template(name, len(json.loads((ROOT / f"workflows/{name}.json").read_text())["nodes"]))
        assert page.unknown_nodes() == [] and page.overlaps() == [], name
        if run.picked:
            page.pick(run.node, run.widget, run.picked)
        page.run()
        expect(page.card()).to_contain_text(re.compile(re.escape(run.shown)))
        # The loader runs after the card.
        until(lambda: status(comfy) != "", 120)
        assert status(comfy) == "success", name
        page.show_all()
        page.picture(pictures / f"template-{name.lower().replace(' ', '-')}.png")
        assert page.overlaps() == [], name
