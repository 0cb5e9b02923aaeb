"""Every workflow of the pack, opened from the template browser."""

from __future__ import annotations

import json
from collections.abc import Callable

from support.comfy_server import ROOT

from .page import ComfyPage

# Of the pack that loads compressed models, which needs a GPU.
ELSEWHERE = {"DFloat11ModelLoader"}


def test_each_opens_with_all_its_nodes(open_page: Callable[[], ComfyPage]) -> None:
    page = open_page()
    paths = sorted((ROOT / "workflows").glob("*.json"))
    assert len(paths) >= 6
    for path in paths:
        # Where the browser of templates opened by itself, it would be in the way of its own button.
        page.page.keyboard.press("Escape")
        page.open_template(path.stem, len(json.loads(path.read_text())["nodes"]))
        assert set(page.unknown_nodes()) <= ELSEWHERE, path.stem
        assert page.overlaps() == [], path.stem
