"""ComfyUI's page as a person uses it: mouse and keyboard. The page's own objects are only asked where things are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

READY = """() => window.app?.graph && window.app?.canvas && window.LiteGraph
    && Object.keys(window.LiteGraph.registered_node_types).length > 100"""
NODE = "window.app.graph._nodes.find((node) => node.type === type)"
# The middle of a widget of a node on the canvas, in pixels of the page.
WIDGET_PLACE = f"""([type, name]) => {{
    const node = {NODE};
    const widget = node.widgets.find((widget) => widget.name === name);
    const canvas = window.app.canvas;
    const at = [node.pos[0] + node.size[0] / 2, node.pos[1] + (widget.last_y ?? widget.y) + 10];
    const [x, y] = canvas.ds.convertOffsetToCanvas(at);
    const frame = canvas.canvas.getBoundingClientRect();
    return [x + frame.left, y + frame.top];
}}"""
SECONDS = 1000.0
# Starting the page takes 6 to 12 s on an idle machine.
START = 120 * SECONDS


class ComfyPage:
    """One tab."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        page.goto(f"http://{address}/", wait_until="domcontentloaded")
        page.wait_for_function(READY, timeout=START)

    def open_template(self, name: str, pack: str = "dfloat11-compress") -> None:
        """From the template browser. A fresh ComfyUI opens it by itself."""
        entry = self.page.get_by_text(pack).first
        try:
            entry.wait_for(timeout=5 * SECONDS)
        except Exception:
            self.page.get_by_role("button", name="Templates").first.click()
        entry.click()
        self.page.get_by_text(name).first.click()
        self.page.wait_for_function(
            "() => window.app.graph._nodes.length > 1 && !document.querySelector('.p-dialog-mask')"
        )
        self.show_all()

    def show_all(self) -> None:
        """The key for "fit view"."""
        self.page.keyboard.press(".")
        self.page.wait_for_timeout(1000)

    def pick(self, node: str, widget: str, value: str) -> None:
        """Chooses a value from a node's list."""
        x, y = self.page.evaluate(WIDGET_PLACE, [node, widget])
        self.page.mouse.click(x, y)
        self.page.get_by_text(value, exact=True).first.click()
        assert self.value(node, widget) == value

    def value(self, node: str, widget: str) -> Any:
        return self.page.evaluate(
            f"([type, name]) => {NODE}.widgets.find((w) => w.name === name).value", [node, widget]
        )

    def choices(self, node: str, widget: str) -> list[str]:
        """What a node's list offers in this tab."""
        values = "({NODE}).widgets.find((w) => w.name === name).options.values".replace("{NODE}", NODE)
        return list(self.page.evaluate(f"([type, name]) => {values}", [node, widget]))

    def unknown_nodes(self) -> list[str]:
        """Types of the workflow that this ComfyUI does not have."""
        return list(
            self.page.evaluate(
                "() => window.app.graph._nodes.map((n) => n.type).filter((t) => !window.LiteGraph.registered_node_types[t])"
            )
        )

    def run(self) -> None:
        self.page.get_by_test_id("queue-button").click()

    def stop(self) -> None:
        self.page.get_by_role("button", name="Cancel current run").click()

    def card(self) -> Locator:
        """The result card on a node."""
        return self.page.locator(".df11-card").first

    def message(self, text: str) -> Locator:
        return self.page.locator(".p-toast-message", has_text=text)

    def progress(self, node: str) -> float | None:
        """How far a node's bar is, from 0 to 1; None without a bar."""
        value = self.page.evaluate(f"(type) => {NODE}.progress ?? null", node)
        return None if value is None else float(value)

    def fits(self, node: str) -> None:
        """Nothing of the card is cut off."""
        card = self.card()
        expect(card).to_be_visible()
        assert card.evaluate(
            "(box) => box.scrollHeight <= box.clientHeight + 1 && box.scrollWidth <= box.clientWidth + 1"
        ), node

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
