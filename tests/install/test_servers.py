"""Installing into a real ComfyUI as the Manager does: each requirement line by pip, then install.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import archive
import project
from host.prompts import NODE, compress, sentences
from support.comfy_client import PromptRejected
from support.comfy_server import ComfyServer
from support.tensors import write_safetensors
from support.tiny_models import tiny_model

from . import places
from .places import ROOT

VERSION = "0.30.0"
ODD_NAME = "DFloat11 (1) r\u00e9serv\u00e9"


@contextmanager
def server(environment: Path, base: Path, pack: Path) -> Iterator[ComfyServer]:
    running = ComfyServer(VERSION, base, {ODD_NAME: pack}, environment)
    try:
        write_safetensors(running.diffusion_models / "model.safetensors", tiny_model("Flux"))
        yield running
    finally:
        running.stop()


def manager_installs(python: Path, pack: Path, found_in: Path, **variables: str) -> str:
    """What ComfyUI-Manager does after a download. It stops at the first line that fails, before install.py."""
    said = ""
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(found_in)}
    for line in (pack / "requirements.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            said += places.run(python, "-m", "pip", "install", line, env=environment, cwd=pack)
    if (pack / "install.py").is_file():
        said += places.run(python, "install.py", env={**os.environ, **variables}, cwd=pack)
    return said


@pytest.fixture(params=[f"comfy-{VERSION}", f"comfy-{VERSION}-py3.13"])
def environment(request: pytest.FixtureRequest, scratch: Path) -> Path:
    """A real ComfyUI's Python without our package, with pip, as in ComfyUI's portable edition."""
    made = places.comfyui_without_package(request.param, scratch / "environment")
    places.run(places.UV, "pip", "install", "--quiet", "--python", made / "bin" / "python", "pip")
    return made


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """The pack from the registry once a version is published, unpacked."""
    pack = tmp_path / "released"
    archive.write(tmp_path / "node.zip")
    zipfile.ZipFile(tmp_path / "node.zip").extractall(pack)
    name = project.pyproject()["project"]["name"]
    (pack / "requirements.txt").write_text(f"{name}=={project.version()}\n")
    return pack


def test_from_the_registry_where_no_native_wheel_fits(
    environment: Path, released: Path, scratch: Path, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shutil.copy(places.wheel(project.PURE_TAG), wheels)
    python = environment / "bin" / "python"
    manager_installs(python, released, wheels)
    reason = places.run(python, "-c", "import df11_native; print(df11_native.REASON)").strip()
    with server(environment, scratch / "base", released) as comfy, comfy.client() as client:
        definition = client.object_info(NODE)
        assert definition["display_name"] == "DFloat11 Compress (native part missing)"
        assert definition["description"].startswith(reason)
        log = comfy.log.read_text()
        with pytest.raises(PromptRejected) as rejected:
            client.submit(compress("model.safetensors"))
        assert sentences(rejected.value) == {reason}
        assert log.count(reason) == 1, "said once at the start"
        assert f"{ODD_NAME}/comfy_node" not in comfy.log.read_text(), "a traceback through the pack"


def test_from_the_registry_with_the_native_wheel(environment: Path, released: Path, scratch: Path) -> None:
    manager_installs(environment / "bin" / "python", released, places.MADE)
    with server(environment, scratch / "base", released) as comfy:
        assert_compresses(comfy)


# It compiles.
@pytest.mark.timeout(1500)
def test_from_git_without_and_with_cargo(environment: Path, scratch: Path) -> None:
    python = environment / "bin" / "python"
    without = {"PATH": places.search_path(), "HOME": str(scratch), "CARGO_HOME": str(scratch)}
    said = manager_installs(python, ROOT, places.MADE, **without)
    if project.requirements():
        assert "is installed and fits" in said
        places.run(places.UV, "pip", "uninstall", "--python", python, "dfloat11-compress")
        said = places.run(python, "install.py", env={**os.environ, **without}, cwd=ROOT)
    assert "the native part was not built. Rust's cargo was not found" in said
    before = git_status()
    # What was compiled for this checkout already is not compiled again.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    said = places.run(python, "install.py", env={**os.environ, "CARGO_TARGET_DIR": target}, cwd=ROOT, seconds=1200)
    assert "the native part is built and installed. Restart ComfyUI." in said
    assert git_status() == before, "the pack's folder was written to"
    with server(environment, scratch / "base", ROOT) as comfy:
        assert_compresses(comfy)


def git_status() -> str:
    return subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def assert_compresses(comfy: ComfyServer) -> None:
    with comfy.client() as client:
        assert client.object_info(NODE)["display_name"] == "DFloat11 Compress"
        client.run(compress("model.safetensors"), timeout=120).require_success()
    assert (comfy.diffusion_models / "model-DF11.safetensors").is_file()
