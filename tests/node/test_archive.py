"""What .comfyignore leaves in the registry's archive (tests/release looks into it), and the help pages there."""

from __future__ import annotations

from types import ModuleType

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


def test_every_node_has_a_help_page_with_every_input(pack: ModuleType) -> None:
    for name, node in pack.NODE_CLASS_MAPPINGS.items():
        page = (PACK / f"web/docs/{name}.md").read_text()
        assert page.startswith(f"# {node.TITLE}\n")
        inputs = node.INPUT_TYPES()
        rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
        assert rows == ["input", *inputs["required"], *inputs["optional"]], name
    pages = {path.stem for path in (PACK / "web/docs").glob("*.md")}
    assert pages == set(pack.NODE_CLASS_MAPPINGS)


def test_the_readme_names_every_node(pack: ModuleType) -> None:
    readme = (PACK / "README.md").read_text()
    assert not [node.TITLE for node in pack.NODE_CLASS_MAPPINGS.values() if f"\n| {node.TITLE} | " not in readme]
