"""The wheel, the wheel without native code, and the pack, on every supported Python that this machine has."""

from __future__ import annotations

import json
import platform
import zipfile
from pathlib import Path
from typing import Any

import pytest

import archive
import project

from . import places
from .places import ROOT

PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13"]


@pytest.fixture(scope="module", params=PYTHONS)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = places.interpreter(request.param)
    return places.environment(found, tmp_path_factory.mktemp("python") / "venv")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pack as the registry hands it out, in a folder that is not called as it is."""
    folder = tmp_path_factory.mktemp("custom_nodes") / "DFloat11 (1) r\u00e9serv\u00e9"
    archive.write(folder.parent / "node.zip")
    zipfile.ZipFile(folder.parent / "node.zip").extractall(folder)
    return folder


def nodes(python: Path, pack: Path) -> tuple[dict[str, Any], list[str]]:
    """The pack's nodes, and what it warns of."""
    found = json.loads(places.run(python, "-B", Path(__file__).with_name("import_pack.py"), pack))
    assert "DFloat11Compress" in found["nodes"]
    return found["nodes"], found["warnings"]


def test_the_wheel(python: Path, pack: Path) -> None:
    places.install(python, places.wheel("manylinux_2_17_x86_64"))
    said = places.run(python, ROOT / "scripts" / "release" / "try_wheel.py")
    assert said.endswith("all is well\n")
    # `df11 env` came first.
    version = project.version()
    assert said.startswith(f"df11 {version} for x86_64 linux\n")
    own = places.run(python, "-c", "import sys; print(sys.executable, sys.version, sep='|')").strip()
    assert all(f"{fact}\n" in said for fact in own.replace("\n", "").split("|"))
    found, warnings = nodes(python, pack)
    assert warnings == []
    assert not [node for node in found.values() if "missing" in node["display_name"]]


def test_the_wheel_without_native_code(python: Path, pack: Path) -> None:
    places.install(python, places.wheel(project.PURE_TAG))
    reason = places.run(python, "-c", "import df11_native; print(df11_native.REASON)").strip()
    repository = project.pyproject()["project"]["urls"]["Repository"]
    assert f" has no ready-made native part for Linux {platform.machine()}, CPython 3." in reason
    assert reason.endswith(f"; {repository}#install says how to build it.") and "\n" not in reason
    assert places.run(python.with_name("df11"), "env", status=1) == f"df11: {reason}\n"
    found, warnings = nodes(python, pack)
    assert warnings == [reason]
    for node in found.values():
        assert node["display_name"].endswith("(native part missing)")
        assert node["description"].startswith(reason)


def test_the_pack_alone(python: Path, pack: Path) -> None:
    places.run(places.UV, "pip", "uninstall", "--quiet", "--python", python, "dfloat11-compress")
    found, (warning,) = nodes(python, pack)
    assert "is not installed: run" in warning
    assert all(node["description"].startswith(warning) for node in found.values())
