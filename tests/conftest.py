"""Fixtures of all Python tests."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Tests import `support`, whichever folder pytest is started in.
sys.path.insert(0, str(Path(__file__).parent))

from support.comfy_server import TEST_NODES, VERSIONS, ComfyServer  # noqa: E402

ROOT = Path(__file__).parents[1]
# Tests of the running servers first, then those of these folders: nothing long is left for the end.
LONG = ("install", "memory", "oracle")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What stays together where several processes share the tests: those of the running servers, else a file's."""
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: (groups[item] != "servers", not groups[item].startswith(LONG)))


def _group(item: pytest.Item) -> str:
    return "servers" if "start_comfy" in getattr(item, "fixturenames", ()) else item.nodeid.partition("::")[0]


@pytest.fixture(scope="session")
def df11() -> Path:
    """The command-line program: DF11_BIN, or the release build."""
    binary = Path(os.environ.get("DF11_BIN", ROOT / "target" / "release" / "df11"))
    if not binary.is_file():
        pytest.fail(f"no {binary}: run cargo build --release, or set DF11_BIN")
    return binary


@pytest.fixture(scope="session")
def scratch_root() -> Iterator[Path]:
    """A folder on a real disk (/tmp may be memory): below DF11_SCRATCH or the build folder; removed at the end."""
    parent = Path(os.environ.get("DF11_SCRATCH", ROOT / "target"))
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="test-scratch-", dir=parent) as folder:
        yield Path(folder)


@pytest.fixture
def scratch(scratch_root: Path) -> Iterator[Path]:
    """An empty folder on disk for one test, removed after it."""
    folder = Path(tempfile.mkdtemp(dir=scratch_root))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def start_comfy(scratch_root: Path) -> Iterator[Callable[[str], ComfyServer]]:
    """Gives the server of a ComfyUI version with this pack and the test nodes; starts it at the first call."""
    servers: dict[str, ComfyServer] = {}

    def start(version: str) -> ComfyServer:
        if version not in servers:
            packs = {"dfloat11-compress": ROOT, "df11_test_nodes": TEST_NODES}
            servers[version] = ComfyServer(version, scratch_root / f"comfy-{version}", packs)
        return servers[version]

    yield start
    for server in servers.values():
        server.stop()


@pytest.fixture(scope="session", params=VERSIONS)
def comfy(request: pytest.FixtureRequest, start_comfy: Callable[[str], ComfyServer]) -> ComfyServer:
    """A running server of each ComfyUI version, one per version and session."""
    return start_comfy(request.param)
