"""The `df11` command that the wheel installs gives the exit codes of the program."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.tensors import Tensor, Tensors

from .conftest import NAME, STANDSTILL, Folder, wait_until

DF11 = Path(sys.executable).with_name("df11")


def run(folder: Folder, *args: str) -> tuple[int, str | None]:
    """The exit code, and the code of the error that `--json` prints."""
    command = [DF11, "--json", *args]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0:
        return 0, json.loads(done.stdout).get("status")
    assert done.stderr, "it says why"
    return done.returncode, json.loads(done.stdout)["error"]["code"]


def test_it_is_the_wheels() -> None:
    assert "from df11_native import main" in DF11.read_text()


def test_done(folder: Folder) -> None:
    assert run(folder, "compress", NAME) == (0, "done")
    assert folder.target.exists()
    assert run(folder, "compress", NAME) == (0, "already-done")
    assert run(folder, "inspect", NAME) == (0, None)
    for args in (["--help"], ["--version"], ["architectures", "--check"]):
        assert subprocess.run([DF11, *args], capture_output=True, check=False).returncode == 0


def test_usage(folder: Folder) -> None:
    for wrong in ([], ["squeeze"], ["compress"], ["compress", NAME, "--header", "short"]):
        assert run(folder, *wrong) == (2, "E_OPTION")
    for wrong in (["--arch", "Unheard"], ["--threads", "0"], ["--max-memory", "1MiB"]):
        assert run(folder, "compress", NAME, *wrong) == (2, "E_OPTION")
    assert run(folder, "compress", NAME, "-o", NAME) == (2, "E_TARGET_IS_SOURCE")
    assert folder.is_clean()


def test_refused(folder: Folder, tensors: Tensors) -> None:
    name = "single_blocks.0.linear1.weight"
    values = tensors[name].array.copy()
    values[0, 0] = 0x7F80
    folder.write(tensors | {name: Tensor("BF16", values)})
    assert run(folder, "compress", NAME) == (3, "E_EXPONENT")
    folder.write(dict(list(tensors.items())[:5]))
    assert run(folder, "inspect", NAME) == (3, "E_ARCH_UNKNOWN")
    assert folder.is_clean()


def test_target_exists(folder: Folder) -> None:
    folder.target.write_bytes(b"somebody's file")
    assert run(folder, "compress", NAME) == (6, "E_TARGET_EXISTS")


def test_unreadable(folder: Folder) -> None:
    assert run(folder, "compress", "missing.safetensors") == (1, "E_READ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(folder: Folder, number: signal.Signals) -> None:
    rate = str(STANDSTILL / 1e6)
    command = [DF11, "compress", NAME, "--max-rate", rate]
    with subprocess.Popen(command, cwd=folder.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(folder.partial.exists)
        process.send_signal(number)
        asked = time.monotonic()
        assert process.wait(10) == 130
        assert time.monotonic() - asked < 1
    assert folder.is_clean()
