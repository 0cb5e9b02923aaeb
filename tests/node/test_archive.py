"""What .comfyignore leaves in the registry's archive (tests/release looks into it), and the help pages there."""

from __future__ import annotations

from .stub_host import PACK

KEPT = {
    "__init__.py", "comfy_node/", "architectures/", "workflows/", "web/", "locales/",
    "pyproject.toml", "requirements.txt", "README.md", "CHANGELOG.md", "LICENSE",
}  # fmt: skip


def test_everything_is_left_out_but_a_list() -> None:
    lines = (PACK / ".comfyignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "/*"
    assert {pattern.removeprefix("!/") for pattern in patterns[1:]} == KEPT
    assert len(patterns) == 1 + len(KEPT)


def test_every_node_has_a_help_page_with_every_input() -> None:
    page = (PACK / "web/docs/DFloat11Compress.md").read_text()
    source = (PACK / "comfy_node/nodes/compress.py").read_text()
    from .fake_native import plan

    names = [*(plan.__kwdefaults__ or {}), "model", "output_name"]
    inputs = [name for name in names if f'"{name}": (' in source]
    assert len(inputs) == 11
    assert not [name for name in inputs if f"\n| {name} | " not in page]
