"""Who may import whom, and what shipped files must not do. DESIGN.md, "Who may know whom"."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .stub_host import PACK

NODE_FILES = sorted((PACK / "comfy_node").rglob("*.py"))
SHIPPED = [PACK / "__init__.py", *NODE_FILES]
PYTHON = [*SHIPPED, PACK / "install.py"]
HOST_MODULES = {"comfy", "comfy_api", "comfy_execution", "execution", "folder_paths", "nodes", "server"}
# Registry scanners flag any of these; see https://docs.comfy.org/registry/standards.
TRIPWIRES = {"subprocess", "ctypes", "importlib", "pickle", "socket", "urllib", "http", "requests", "multiprocessing"}


def name(path: Path) -> str:
    return path.relative_to(PACK).as_posix()


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Top-level name and number of dots of every import, wherever it stands in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0], node.level


def absolute(path: Path) -> set[str]:
    return {module for module, level in imports(path) if level == 0}


def test_the_files_are_there() -> None:
    assert len(NODE_FILES) > 15


@pytest.mark.parametrize("path", SHIPPED, ids=name)
class TestShipped:
    def test_imports_only_the_standard_library_and_itself(self, path: Path) -> None:
        allowed = set(sys.stdlib_module_names)
        if path.parent.name == "host":
            allowed |= HOST_MODULES
        if name(path) == "comfy_node/native.py":
            allowed.add("df11_native")
        if name(path) == "comfy_node/service/picture.py":
            allowed.add("PIL")  # ComfyUI brings it; without it there is no picture.
        assert absolute(path) <= allowed
        assert not absolute(path) & TRIPWIRES

    def test_layers_point_one_way(self, path: Path) -> None:
        parts = path.relative_to(PACK).parts
        if parts[0] != "comfy_node" or len(parts) == 2:
            return
        tree = ast.parse(path.read_text())
        used = {
            node.module.split(".")[0] if node.module else alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level == 2
            for alias in node.names
        }
        forbidden = {"host": {"service", "nodes", "native"}, "service": {"host", "nodes"}, "nodes": {"native"}}[
            parts[1]
        ]
        assert not used & forbidden

    def test_calls_nothing_that_runs_text_or_changes_the_environment(self, path: Path) -> None:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("eval", "exec", "compile", "__import__", "os.system", "os.popen")
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("environ", "putenv", "getenv"), "settings come from widgets"


def test_torch_is_nowhere_and_one_module_knows_the_native_one() -> None:
    users = [name(path) for path in PYTHON if "df11_native" in absolute(path)]
    assert users == ["comfy_node/native.py"]
    assert not [name(path) for path in PYTHON if "torch" in absolute(path)]


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_is_readable_everywhere(path: Path) -> None:
    path.read_text(encoding="utf-8").encode("cp1252")


def test_runs_on_python_3_9() -> None:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    python = next(iter(versions.glob("3.9.*/bin/python3.9")), None) or shutil.which("python3.9")
    if python is None:
        pytest.skip("no Python 3.9 on this machine")
    code = "import sys; [compile(open(p, encoding='utf-8').read(), p, 'exec') for p in sys.argv[1:]]"
    subprocess.run([python, "-c", code, *PYTHON], check=True)
    # Annotations aside, everything that runs at import must run there too.
    modules = [name(p)[:-3].replace("/", ".") for p in NODE_FILES if p.parts[-2] in ("service", "comfy_node")]
    lines = "; ".join(f"import {m.removesuffix('.__init__')}" for m in modules)
    subprocess.run([python, "-B", "-c", lines], cwd=PACK, check=True)
