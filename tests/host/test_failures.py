"""Failures that people meet: each is one sentence with a code and what to do, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.comfy_client import ComfyClient
from support.comfy_server import ComfyServer

from .conftest import MakeModel
from .prompts import compress, prompt_of
from .test_nodes import sentence
from .test_run import report

MakeDisk = Callable[[str], Path]


@pytest.fixture
def disk(comfy: ComfyServer) -> Iterator[MakeDisk]:
    """Mounts a small disk in the diffusion_models folder."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        folder = comfy.diffusion_models / "disk"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True, text=True
        )
        if done.returncode:
            folder.rmdir()
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@pytest.fixture
def quiet_console(comfy: ComfyServer) -> Iterator[None]:
    """Nothing of a test may end in a traceback in the server's console."""
    logged = len(comfy.log.read_text())
    yield
    assert "Traceback" not in comfy.log.read_text()[logged:]


pytestmark = pytest.mark.usefixtures("quiet_console")


def test_a_full_disk(client: ComfyClient, model: MakeModel, disk: MakeDisk) -> None:
    source = model("elsewhere.safetensors")
    folder = disk("1m")
    (folder / "a.safetensors").symlink_to(source)
    text = sentence(client.run(compress("disk/a.safetensors")))
    assert text.startswith(str(folder)) and text.endswith("[E_NO_SPACE]") and "Free " in text
    lines = report(client.run(prompt_of("DFloat11Inspect", model="disk/a.safetensors")))
    assert lines[0].startswith("Not enough space: about 2 MB needed, 1 MB free")
    lines = report(client.run(prompt_of("DFloat11CompressFolder", folder="diffusion_models/disk")).require_success())
    assert lines[0] == "0 compressed, 1 failed" and any("[E_NO_SPACE]" in line for line in lines)
    assert [path.name for path in folder.iterdir()] == ["a.safetensors"]


def test_a_read_only_folder(comfy: ComfyServer, client: ComfyClient, model: MakeModel, disk: MakeDisk) -> None:
    source = model("elsewhere.safetensors")
    folder = disk("1m")
    (folder / "a.safetensors").symlink_to(source)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    lines = report(client.run(compress("disk/a.safetensors")).require_success())
    target = comfy.base / "output" / "diffusion_models" / "a-DF11.safetensors"
    assert f"Written to: {target}" in lines and target.is_file()
    assert "Name in the loader's list: a-DF11.safetensors" in lines
    assert f"Note: {folder} cannot be written, so the file is in {target.parent}, which loaders list too." in lines


@pytest.mark.parametrize("cut", [8, 1000, -1])
def test_a_source_that_is_being_downloaded(client: ComfyClient, model: MakeModel, cut: int) -> None:
    source = model()
    source.write_bytes(source.read_bytes()[:cut])
    inspected = report(client.run(prompt_of("DFloat11Inspect", model=source.name)).require_success())
    assert inspected[0] == "Would be refused: 1 reason"
    for text in (inspected[-1], sentence(client.run(compress(source.name)))):
        assert text.startswith("model.safetensors: ") and text.endswith("[E_TRUNCATED]")
        assert "download" in text.lower()
    assert [path.name for path in source.parent.glob("model*")] == ["model.safetensors"]


def test_two_runs_on_one_target(client: ComfyClient, model: MakeModel, df11: Path) -> None:
    source = model(blocks=3)
    other = subprocess.Popen([df11, "compress", source, "--max-rate", "0.1"], stderr=subprocess.DEVNULL)
    try:
        partial = source.with_name("model-DF11.safetensors.partial")
        deadline = time.monotonic() + 20
        while not partial.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        text = sentence(client.run(compress(source.name)))
        assert text.endswith("[E_TARGET_BUSY]") and "other run" in text
        assert partial.exists()
    finally:
        other.terminate()
        other.wait(10)
    client.run(compress(source.name)).require_success()


def test_wrong_kinds_of_files(client: ComfyClient, model: MakeModel) -> None:
    source = model()
    for content, code in (
        (b"", "E_NOT_SAFETENSORS"),
        (b"GGUF" + bytes(100), "E_NOT_SAFETENSORS"),
        (b"PK\x03\x04" + bytes(100), "E_NOT_SAFETENSORS"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "E_NOT_SAFETENSORS"),
    ):
        source.write_bytes(content)
        for prompt in (
            compress(source.name),
            prompt_of("DFloat11Verify", df11_model=source.name),
            prompt_of("DFloat11Restore", df11_model=source.name),
        ):
            text = sentence(client.run(prompt))
            assert text.endswith(f"[{code}]") and "\n" not in text and len(text) > len(code) + 30, text
    model()
    client.run(compress(source.name)).require_success()
    text = sentence(client.run(compress("model-DF11.safetensors")))
    assert text.endswith("[E_ALREADY_DF11]")


def test_a_file_that_may_not_be_read(client: ComfyClient, model: MakeModel) -> None:
    if os.geteuid() == 0:
        pytest.skip("the administrator may read everything")
    source = model()
    source.chmod(0)
    assert sentence(client.run(compress(source.name))).endswith("[E_READ]")
