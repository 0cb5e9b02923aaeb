"""ComfyUI's page as a person uses it: mouse and keyboard. The page's own objects are only asked where things are."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError

READY = """() => window.app?.graph && window.app?.canvas && window.LiteGraph
    && Object.keys(window.LiteGraph.registered_node_types).length > 100"""
NODE = "window.app.graph._nodes.find((node) => node.type === type)"
WIDGET = f"{NODE}.widgets.find((widget) => widget.name === name)"
# The middle of a widget of a node on the canvas, in pixels of the page.
WIDGET_PLACE = f"""([type, name]) => {{
    const [node, widget, canvas] = [{NODE}, {WIDGET}, window.app.canvas];
    const at = [node.pos[0] + node.size[0] / 2, node.pos[1] + (widget.last_y ?? widget.y) + 10];
    const [x, y] = canvas.ds.convertOffsetToCanvas(at);
    const frame = canvas.canvas.getBoundingClientRect();
    return [x + frame.left, y + frame.top];
}}"""
LOADED = "(count) => window.app.graph._nodes.length === count && !document.querySelector('.p-dialog-mask')"
TYPES = "() => window.app.graph._nodes.map((node) => node.type)"
UNKNOWN = f"() => ({TYPES})().filter((type) => !window.LiteGraph.registered_node_types[type])"
CUT = "(box) => box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1"
# Boxes of nodes on the canvas that overlap: titles stand above a node's own place.
OVERLAPS = """() => {
    const box = (n) => [n.pos[0], n.pos[1] - 30, n.pos[0] + n.size[0], n.pos[1] + n.size[1]];
    const apart = (a, b) => a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
    const nodes = window.app.graph._nodes;
    const pairs = nodes.flatMap((n, at) => nodes.slice(at + 1).map((m) => [n, m]));
    return pairs.filter(([n, m]) => !apart(box(n), box(m))).map(([n, m]) => [n.type, m.type]);
}"""
SECONDS = 1000.0


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


class ComfyPage:
    """One tab."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        page.set_default_timeout(60 * SECONDS)
        page.goto(f"http://{address}/", wait_until="domcontentloaded")
        # 6 to 12 s on an idle machine.
        page.wait_for_function(READY, timeout=120 * SECONDS)

    def open_template(self, name: str, nodes: int, pack: str = "dfloat11-compress") -> None:
        """From the template browser, which a fresh ComfyUI of some versions opens by itself."""
        # The page behind has these words too.
        browser = self.page.get_by_role("dialog")
        entry = browser.get_by_text(pack, exact=True).first
        try:
            entry.wait_for(timeout=5 * SECONDS)
        except TimeoutError:
            self.page.get_by_role("button", name="Templates").first.click()
        entry.click()
        browser.get_by_text(name, exact=True).first.click()
        self.page.wait_for_function(LOADED, arg=nodes)
        self.show_all()

    def show_all(self) -> None:
        """The key for "fit view"."""
        self.page.keyboard.press(".")
        # The view glides to its place.
        self.page.wait_for_timeout(1000)

    def pick(self, node: str, widget: str, value: str) -> None:
        """Chooses a value from a node's list."""
        self.page.mouse.click(*self.page.evaluate(WIDGET_PLACE, [node, widget]))
        self._choose(value)
        assert self.value(node, widget) == value

    def pick_by_text(self, node: str, widget: str, value: str) -> None:
        """The same in Nodes 2.0, which are part of the page: the list is where its present value stands."""
        self.page.get_by_text(self.value(node, widget), exact=True).locator("visible=true").last.click()
        self._choose(value)
        assert self.value(node, widget) == value

    def _choose(self, value: str) -> None:
        # An open list lies over everything else, and so comes last in the page.
        self.page.get_by_text(value, exact=True).locator("visible=true").last.click()

    def value(self, node: str, widget: str) -> Any:
        return self.page.evaluate(f"([type, name]) => {WIDGET}.value", [node, widget])

    def set(self, node: str, widget: str, value: object) -> None:
        """Sets a value without the mouse."""
        self.page.evaluate(f"([type, name, value]) => {{ {WIDGET}.value = value; }}", [node, widget, value])

    def set_theme(self, name: str) -> None:
        """`dark` or `light`."""
        self.set_setting("Comfy.ColorPalette", name)

    def set_setting(self, name: str, value: object) -> None:
        """The server remembers it for the pages that are opened later."""
        self.page.evaluate("([name, value]) => window.app.ui.settings.setSettingValueAsync(name, value)", [name, value])
        self.page.wait_for_timeout(1000)

    def choices(self, node: str, widget: str) -> list[str]:
        """What a node's list offers in this tab."""
        return list(self.page.evaluate(f"([type, name]) => {WIDGET}.options.values", [node, widget]))

    def unknown_nodes(self) -> list[str]:
        """Types in the workflow that this ComfyUI does not have."""
        return list(self.page.evaluate(UNKNOWN))

    def overlaps(self) -> list[list[str]]:
        """Pairs of nodes of which one hides a part of the other."""
        return list(self.page.evaluate(OVERLAPS))

    def run(self) -> None:
        self.page.get_by_test_id("queue-button").click()

    def stop(self) -> None:
        self.page.get_by_role("button", name="Cancel current run").click()

    def card(self) -> Locator:
        """The result card on a node."""
        return self.page.locator(".df11-card").locator("visible=true").first

    def is_cut(self, box: Locator) -> bool:
        """Whether a part of a box's content is out of sight."""
        return bool(box.evaluate(CUT))

    def message(self, text: str) -> Locator:
        return self.page.locator(".p-toast-message", has_text=text)

    def progress(self, node: str) -> float:
        """How far a node's bar is, from 0 to 1; 0 without a bar."""
        return float(self.page.evaluate(f"(type) => {NODE}.progress ?? 0", node))

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
