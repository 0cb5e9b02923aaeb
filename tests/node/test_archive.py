"""What the registry's archive holds: tracked files less those that .comfyignore matches."""

from __future__ import annotations

from .stub_host import PACK

KEPT = {
    "__init__.py", "comfy_node/", "architectures/", "workflows/", "web/", "locales/",
    "pyproject.toml", "requirements.txt", "README.md", "CHANGELOG.md", "LICENSE",
}  # fmt: skip
KINDS = {".py", ".toml", ".json", ".jpg", ".md", ".js", ".txt", ""}


def test_everything_is_left_out_but_a_list() -> None:
    lines = (PACK / ".comfyignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "/*"
    assert {pattern.removeprefix("!/") for pattern in patterns[1:]} == KEPT
    assert len(patterns) == 1 + len(KEPT)


def test_only_text_and_pictures_are_kept() -> None:
    for entry in KEPT:
        folder = PACK / entry
        for path in folder.rglob("*") if folder.is_dir() else []:
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.suffix in KINDS, path


def test_every_node_has_a_help_page_with_every_input() -> None:
    page = (PACK / "web/docs/DFloat11Compress.md").read_text()
    source = (PACK / "comfy_node/nodes/compress.py").read_text()
    from .fake_native import plan

    names = [*(plan.__kwdefaults__ or {}), "model", "output_name"]
    inputs = [name for name in names if f'"{name}": (' in source]
    assert len(inputs) == 11
    assert not [name for name in inputs if f"\n| {name} | " not in page]


def test_requirements_wait_for_the_first_release() -> None:
    lines = (PACK / "requirements.txt").read_text().splitlines()
    assert all(line.startswith("#") for line in lines), "an unresolvable line stops the Manager before install.py"
