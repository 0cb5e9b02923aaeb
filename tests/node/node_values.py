"""What the server passes to a node when nobody touched the widgets."""

from __future__ import annotations

from typing import Any


def values(node: Any, **changes: Any) -> dict[str, Any]:
    inputs = node.INPUT_TYPES()
    widgets = {**inputs["required"], **inputs["optional"]}
    defaults = {n: kind[0] if isinstance(kind, list) else options["default"] for n, (kind, options) in widgets.items()}
    return {**defaults, "unique_id": "7", **changes}
