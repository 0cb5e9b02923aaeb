"""What the registry's archive holds, and that its scanner finds nothing in it."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

import archive
import project

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".envs" / "release" / "bin"

# Everything that may be in it, as patterns of whole paths.
ALLOWED = re.compile(
    r"""
      __init__\.py | pyproject\.toml | requirements\.txt | README\.md | CHANGELOG\.md | LICENSE
    | comfy_node/([a-z_]+/)*[a-z_]+\.py
    | architectures/[a-z0-9-]+\.toml
    | workflows/[\w -]+\.(json|jpg)
    | web/([a-z_]+/)*[A-Za-z0-9_.-]+\.(js|css) | web/docs/(DFloat11[A-Za-z]+/)?[A-Za-z0-9_-]+\.(md|jpg|png)
    | locales/[a-zA-Z-]+/(nodeDefs|main|settings|commands)\.json
    """,
    re.VERBOSE,
)
# Words that its scanner is known to stop at, in code: other programs, other libraries, running text, the network,
# settings of the process, files taken away. https://docs.comfy.org/registry/standards has the rules.
TRIPWIRES = re.compile(
    r"\b(subprocess|os\.system|os\.popen|popen|ctypes|cffi|importlib|__import__|eval|exec|execfile|compile|marshal|pickle|dill"
    r"|urllib|requests|httpx|aiohttp|http\.client|socket|ftplib|paramiko|websocket|environ|putenv|setenv|getenv|base64"
    r"|rmtree|pip install|site-packages|LD_PRELOAD|XMLHttpRequest|WebSocket|Function\()\b|https?://(?!(docs\.comfy\.org|github\.com)\b)"
)
# These are for people: the remedies that the pack prints, and ComfyUI's own API that is asked from the browser.
FINE = re.compile(r"-m pip install|api\.fetchApi")
BIGGEST = 2_000_000


def tripped(name: str, text: str) -> list[str]:
    return [f"{name}: {match[0]}" for match in TRIPWIRES.finditer(FINE.sub("", text))]


@pytest.fixture
def packed(tree: Path, tmp_path: Path) -> zipfile.ZipFile:
    archive.write(tmp_path / "node.zip", tree)
    return zipfile.ZipFile(tmp_path / "node.zip")


def test_it_holds_only_what_is_allowed(packed: zipfile.ZipFile) -> None:
    names = packed.namelist()
    assert not [name for name in names if not ALLOWED.fullmatch(name)]
    assert {"__init__.py", "comfy_node/native.py", "pyproject.toml", "requirements.txt", "LICENSE"} <= set(names)
    assert len([name for name in names if name.startswith("architectures/")]) > 20
    assert sum(info.file_size for info in packed.infolist()) < BIGGEST
    assert packed.testzip() is None


def test_what_a_developer_adds_stays_out(tree: Path) -> None:
    for name in ("comfy_node.bak", "rust/x.rs", "tests/x.py", "docs/x.md", "df11_native.abi3.so", "scripts/x.py"):
        (tree / name).write_text("x")
    subprocess.run(["git", "add", "--all", "--force"], cwd=tree, check=True)
    assert not [name for name in archive.members(tree) if not ALLOWED.fullmatch(name)]
    (tree / "comfy_node" / "stray.so").write_bytes(b"x")
    subprocess.run(["git", "add", "--all", "--force"], cwd=tree, check=True)
    assert [name for name in archive.members(tree) if not ALLOWED.fullmatch(name)] == ["comfy_node/stray.so"]


def test_no_tripwire_is_in_it(packed: zipfile.ZipFile) -> None:
    code = [name for name in packed.namelist() if name.endswith((".py", ".js", ".html"))]
    assert len(code) > 15
    assert not [hit for name in code for hit in tripped(name, packed.read(name).decode())]


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "os.environ['A'] = 'b'",
        "x = eval(y)",
        "ctypes.CDLL",
        "urllib.request",
        "fetch('https://x.y')",
    ],
)
def test_the_tripwires_are_felt(text: str) -> None:
    assert tripped("x.py", text)


def tool(command: list[str | Path], folder: Path, home: Path) -> str:
    """Runs a tool of the registry; it finds no settings, and nobody to report to."""
    environment = {"PATH": f"{TOOLS}:/usr/bin:/bin", "HOME": str(home), "DO_NOT_TRACK": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    return text


def test_the_registrys_tool_makes_the_same(tree: Path, tmp_path: Path) -> None:
    quiet: list[str | Path] = [TOOLS / "comfy", "--skip-prompt", "--no-enable-telemetry", "node"]
    text = tool([*quiet, "validate"], tree, tmp_path)
    assert "All validation checks passed" in text and "arning" not in text
    tool([*quiet, "pack"], tree, tmp_path)
    assert sorted(zipfile.ZipFile(tree / "node.zip").namelist()) == archive.members(tree)


def test_comfyui_reads_the_packs_description() -> None:
    """ComfyUI's own reader of pyproject.toml, which leaves out what it does not know."""
    environment = ROOT / ".envs" / "comfy-0.30.0"
    code = (
        "import sys; from comfy_config.config_parser import extract_node_configuration as read\n"
        "found = read(sys.argv[1])\n"
        "print(found.project.name, found.project.version, found.tool_comfy.display_name)\n"
        "print(found.project.supported_os, found.project.supported_comfyui_version)"
    )
    command = [environment / "bin" / "python", "-c", code, ROOT]
    done = subprocess.run(command, cwd=environment / "ComfyUI", capture_output=True, text=True, check=True)
    host = project.pyproject()["tool"]["comfy"]["requires-comfyui"]
    assert done.stdout.splitlines() == [
        f"dfloat11-compress {project.version()} DFloat11 Compress",
        f"['OS Independent'] {host}",
    ]
    assert done.stderr == ""


def test_the_linter_of_node_packs_is_content(packed: zipfile.ZipFile, tmp_path: Path) -> None:
    pack = tmp_path / "unpacked"
    packed.extractall(pack)
    text = tool([TOOLS / "comfy-test", "lint", pack], tmp_path, tmp_path)
    assert "[SYNTAX] PASSED" in text and "[JAVASCRIPT] PASSED" in text
    assert "0 error(s), 0 warning(s)" in text
