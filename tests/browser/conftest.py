"""A real browser on the page of each real server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect, sync_playwright

from support.comfy_server import ComfyServer
from support.tensors import write_safetensors
from support.tiny_models import tiny_model

from .page import SECONDS, ComfyPage

SWITCHES = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync""".split()
# The page asks other hosts for fonts and news; nothing here may leave the machine.
ONLY_HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
# A page on a busy machine takes its time.
expect.set_options(timeout=60 * SECONDS)


@pytest.fixture(scope="session")
def chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        reason = "no chromium on PATH: run scripts/envs/chromium.sh"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(f"SKIP: {reason}")
    return program


@pytest.fixture
def context(chromium: str, tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser that was never used before."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            headless=True,
            viewport={"width": 1400, "height": 1000},
            args=[*SWITCHES, ONLY_HERE],
        )
        yield context
        context.close()


@pytest.fixture
def open_page(context: BrowserContext, comfy: ComfyServer) -> Callable[[], ComfyPage]:
    """Opens ComfyUI in a tab. Its lists show the files that are there by then."""
    return lambda: ComfyPage(context.new_page(), comfy.address)


@pytest.fixture
def pictures(comfy: ComfyServer, tmp_path: Path) -> Path:
    """A folder for screenshots: below DF11_PICTURES, to be looked at, or gone after the tests."""
    return Path(os.environ.get("DF11_PICTURES", tmp_path)) / comfy.base.name


@pytest.fixture
def models(comfy: ComfyServer) -> Iterator[Callable[..., Path]]:
    """Writes small Flux checkpoints into diffusion_models; all that is new there is gone after the test."""
    folder = comfy.diffusion_models
    before = set(folder.rglob("*"))

    def make(name: str, blocks: int = 2) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_safetensors(path, tiny_model("Flux", double=blocks, single=blocks))
        return path

    yield make
    for path in sorted(set(folder.rglob("*")) - before, reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
