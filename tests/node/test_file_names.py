"""Names that a user, or a workflow from elsewhere, gives to the result."""

from __future__ import annotations

import pytest

from comfy_node.errors import NodeError
from comfy_node.service.file_names import result_name


@pytest.mark.parametrize(
    ("wanted", "source", "expected"),
    [
        ("", "flux.safetensors", "flux-DF11.safetensors"),
        ("  ", "sub/flux.v1.sft", "flux.v1-DF11.safetensors"),
        ("mine", "flux.safetensors", "mine.safetensors"),
        ("mine.safetensors", "flux.safetensors", "mine.safetensors"),
        ("Mine.SafeTensors", "flux.safetensors", "Mine.SafeTensors"),
        ("v1.0", "flux.safetensors", "v1.0.safetensors"),
        ("m\u00f6del \u6a21\u578b", "flux.safetensors", "m\u00f6del \u6a21\u578b.safetensors"),
        ("console", "flux.safetensors", "console.safetensors"),
    ],
)
def test_gives(wanted: str, source: str, expected: str) -> None:
    assert result_name(wanted, source) == expected


@pytest.mark.parametrize(
    "name",
    [
        "../escape", "..", ".", "a/b", "a\\b", "/etc/passwd", "\\\\server\\share", "C:\\x", "C:x", "a:stream",
        "nul\0byte", "new\nline", "tab\t", "a*", "a?", 'a"', "a<b", "a>b", "a|b",
        "CON", "con.safetensors", "Nul.x.y", "COM1", "lpt9.safetensors", "com\u00b9", "CONIN$", "aux .safetensors",
        "dot.", "space ", " space", ".hidden", ".safetensors", "\ud800", "x" * 236, "\u6a21" * 79,
    ],
)  # fmt: skip
def test_refuses(name: str) -> None:
    with pytest.raises(NodeError, match="The output name"):
        result_name(name, "flux.safetensors")


def test_the_longest_name_leaves_room_for_the_partial_file() -> None:
    assert len(result_name("x" * 235, "") + ".partial") == 255
