"""The browser part's pure functions, under node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_pure_functions(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("SKIP: node is not installed")
    # ComfyUI serves modules without asking for a package.json; node wants one.
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copytree(ROOT / "web", tmp_path / "web")
    shutil.copy(Path(__file__).with_name("card.test.js"), tmp_path)
    done = subprocess.run([node, "--test", "card.test.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_extensions_stay_in_their_own_place() -> None:
    scripts = {path.name: path.read_text() for path in (ROOT / "web").rglob("*.js")}
    assert set(scripts) == {"card.js", "dfloat11.js"}
    for text in scripts.values():
        assert not re.search(r"\bwindow\.|\.prototype\b|globalThis", text)
        assert all(name.startswith("dfloat11compress.") for name in re.findall(r'name: "([^"]+)"', text))
        assert "custom_nodes" not in text
