"""The result as a picture: a card with a background of its own, so that it reads the same in light and dark themes.

Drawn with Pillow, which ComfyUI brings. Without it there is no picture.
"""

from __future__ import annotations

import io
import re
from itertools import groupby
from typing import Any

from .wording import size

try:
    from PIL import Image, ImageDraw, ImageFont
except Exception:  # Whatever keeps a picture library from loading must not take the nodes away.
    Image = None

# Twice the width of a node, so that it stays sharp. A browser shows letters at half their size.
_WIDTH = 800
_EDGE = 28
_INNER = _WIDTH - 2 * _EDGE
_CARD, _TEXT, _QUIET = "#20242c", "#f2f4f8", "#a9b2c0"
_BEFORE, _AFTER, _LINE = "#5b6578", "#45c4b0", "#3a4150"
_LARGE, _NORMAL, _SMALL = 44, 26, 22
# More files than this would make a picture that no node has room for.
_MOST_FILES = 16


def of_units(outcome: dict[str, Any], units: list[dict[str, Any]]) -> bytes | None:
    """One compressed model: its total, each unit before and after, bits per weight. None where nothing can be drawn."""
    if Image is None or not units:
        return None
    units = sorted(units, key=lambda unit: _natural(unit["name"]))
    card = _Card(700)
    weights = sum(unit["weights"] for unit in units)
    bits = sum(unit["weights"] * unit["bits_per_weight"] for unit in units) / max(weights, 1)
    about = f"{len(units)} units, {bits:.2f} bits per weight, {outcome['architecture_name']}"
    top = card.head(outcome["source_bytes"], outcome["target_bytes"], about)
    top = card.caption(top, "Units before and after")
    largest = max(max(unit["bf16_bytes"], unit["df11_bytes"]) for unit in units)
    card.note(top, f"largest {size(largest)}")
    columns = _columns(len(units))
    for unit, (left, right) in zip(units, columns):
        for value, colour in ((unit["bf16_bytes"], _BEFORE), (unit["df11_bytes"], _AFTER)):
            card.column(left, right, top + 30, 130, value / largest, colour)
    top = card.groups(top + 166, units, columns)
    top = card.caption(top, "Bits per weight")
    found = [unit["bits_per_weight"] for unit in units]
    # Never so near that noise looks like a mountain.
    low, high = min(found) - 0.25, max(found) + 0.25
    card.note(top, f"{min(found):.2f} to {max(found):.2f}")
    for value, (left, right) in zip(found, columns):
        card.column(left, right, top + 30, 80, (value - low) / (high - low), _AFTER)
    return card.png(top + 110 + _EDGE)


def of_files(files: list[tuple[str, int, int]]) -> bytes | None:
    """Several compressed models: name, bytes before, bytes after."""
    if Image is None or not files:
        return None
    shown = files[:_MOST_FILES]
    card = _Card(340 + 68 * len(shown))
    before, after = sum(old for _, old, _ in files), sum(new for _, _, new in files)
    top = card.head(before, after, f"{len(files)} model{'s' if len(files) > 1 else ''}")
    largest = max(max(old, new) for _, old, new in shown)
    for name, old, new in shown:
        saved = f"{size(old)} to {size(new)}"
        top = card.caption(top, name, saved)
        for value, colour in ((old, _BEFORE), (new, _AFTER)):
            card.bar(top, 14, value / largest, colour)
        top += 24
    if len(files) > len(shown):
        top = card.caption(top, f"and {len(files) - len(shown)} more")
    return card.png(top + _EDGE)


class _Card:
    def __init__(self, height: int) -> None:
        self._image = Image.new("RGB", (_WIDTH, height), _CARD)
        self._draw = ImageDraw.Draw(self._image)

    def head(self, before: int, after: int, about: str) -> int:
        """The total; returns where to go on."""
        change = 100 * (1 - after / max(before, 1))
        self._write(_EDGE, _EDGE - 6, f"{abs(change):.1f} % {'smaller' if change >= 0 else 'larger'}", _LARGE)
        self._write(_EDGE, 78, f"{size(before)} to {size(after)}", _NORMAL)
        self._write(_EDGE, 112, self._fitting(about, _INNER), _SMALL, _QUIET)
        largest = max(before, after, 1)
        for value, colour in ((before, _BEFORE), (after, _AFTER)):
            self.bar(152, 30, value / largest, colour)
        for left, colour, name in ((_EDGE, _BEFORE, "BF16"), (_EDGE + 120, _AFTER, "DFloat11")):
            self._draw.rectangle((left, 200, left + 16, 216), fill=colour)
            self._write(left + 26, 195, name, _SMALL, _QUIET)
        return 232

    def caption(self, top: int, text: str, right: str = "") -> int:
        self._draw.line((_EDGE, top + 6, _WIDTH - _EDGE, top + 6), fill=_LINE)
        self._write(_EDGE, top + 14, self._fitting(text, _INNER - self._length(right, _SMALL) - 20), _SMALL)
        if right:
            self.note(top + 44, right)
        return top + 44

    def note(self, top: int, text: str) -> None:
        """Quiet text at the right end of the caption above `top`."""
        self._write(_WIDTH - _EDGE - self._length(text, _SMALL), top - 30, text, _SMALL, _QUIET)

    def bar(self, top: int, height: int, share: float, colour: str) -> None:
        self._draw.rectangle((_EDGE, top, _EDGE + share * _INNER, top + height), fill=colour)

    def column(self, left: float, right: float, top: int, height: int, share: float, colour: str) -> None:
        self._draw.rectangle((left, top + height * (1 - share), right, top + height), fill=colour)

    def groups(self, top: int, units: list[dict[str, Any]], columns: list[tuple[float, float]]) -> int:
        """Names below the columns: of neighbours that differ in numbers only, one for all, where it has room."""
        numbered = enumerate(units)
        for name, members in groupby(numbered, key=lambda entry: re.sub(r"\d+", "*", entry[1]["name"])):
            indices = [index for index, _ in members]
            left, right = columns[indices[0]][0], columns[indices[-1]][1]
            self._draw.line((left, top, right, top), fill=_QUIET)
            label = name.replace(".*", "").replace("*", "")
            if self._length(label, _SMALL) <= right - left:
                self._write(left, top + 4, label, _SMALL, _QUIET)
        return top + 36

    def png(self, height: int) -> bytes:
        buffer = io.BytesIO()
        self._image.crop((0, 0, _WIDTH, height)).save(buffer, "PNG")
        return buffer.getvalue()

    def _fitting(self, text: str, room: float) -> str:
        """Small text, shortened to the room there is."""
        while text and self._length(text, _SMALL) > room:
            text = text[:-4] + "..." if len(text) > 4 else ""
        return text

    def _write(self, left: float, top: float, text: str, points: int, colour: str = _TEXT) -> None:
        self._draw.text((left, top), _drawable(text), fill=colour, font=_font(points))

    def _length(self, text: str, points: int) -> float:
        return float(self._draw.textlength(_drawable(text), font=_font(points)))


def _font(points: int) -> Any:
    try:
        return ImageFont.load_default(points)
    except (TypeError, OSError):  # Pillow before 10.1, or without FreeType: one small font.
        return ImageFont.load_default()


def _drawable(text: str) -> str:
    """The built-in font has Latin letters only."""
    return text.encode("latin-1", "replace").decode("latin-1")


def _columns(count: int) -> list[tuple[float, float]]:
    """Left and right of so many columns, with a gap while there is room for one."""
    width = _INNER / count
    gap = min(6.0, width * 0.2) if width >= 3 else 0.0
    lefts = [_EDGE + index * width for index in range(count)]
    return [(left, max(left, left + width - gap - 1)) for left in lefts]


def _natural(name: str) -> list[Any]:
    """Sorts numbers in names by their value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
