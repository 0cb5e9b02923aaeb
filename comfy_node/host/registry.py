"""The nodes that this ComfyUI has loaded."""

from __future__ import annotations

import nodes


def has_node(node_id: str) -> bool:
    """Whether any pack, or ComfyUI itself, brought this node."""
    return node_id in nodes.NODE_CLASS_MAPPINGS
