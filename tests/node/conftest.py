"""Fixtures: a stub host, a stand-in for the native part, the pack loaded into them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from . import fake_native
from .stub_host import PACK, StubHost, load_pack

sys.path.insert(0, str(PACK))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubHost:
    stub = StubHost(tmp_path / "comfy")
    stub.install(monkeypatch)
    return stub


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_native.Script]:
    """The native part is there, and does what this says."""
    from comfy_node import native

    monkeypatch.setitem(sys.modules, "df11_native", fake_native)
    monkeypatch.setattr(fake_native, "script", fake_native.Script())
    native.problem.cache_clear()
    yield fake_native.script
    native.problem.cache_clear()


@pytest.fixture
def pack(host: StubHost, script: fake_native.Script) -> ModuleType:
    return load_pack()
