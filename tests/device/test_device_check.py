"""`scripts/device_check.py`, with the stand-in for the NVIDIA driver, and a file of the official tool."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oracle import generators
from support.official import compress_file, dfloat11
from support.tensors import Tensor

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def driver(df11: Path) -> Path:
    """The stand-in, built beside the program."""
    found = df11.with_name("libfake_cuda.so")
    if not found.is_file():
        pytest.skip(f"SKIP no {found}: run cargo build --release -p fake-cuda")
    return found


def device_check(df11: Path, *options: object) -> subprocess.CompletedProcess[str]:
    kernel = Path(dfloat11.__file__).with_name("decode.ptx")
    command = [sys.executable, ROOT / "scripts" / "device_check.py", df11, "--kernel-ptx", kernel, *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


# Some hundred runs of the program.
@pytest.mark.timeout(900)
def test_all_units_pass_and_the_output_says_so(df11: Path, driver: Path, scratch: Path) -> None:
    weights = Tensor("BF16", generators.gaussian(50_000, 1).reshape(100, 500))
    other = Tensor("BF16", np.zeros(4, "<u2"))
    compress_file(
        {"blocks.0.w.weight": weights, "norm.bias": other}, {r"blocks\.\d+": ["w"]}, scratch / "official.safetensors"
    )
    done = device_check(df11, "--cuda-driver", driver, "--also", scratch)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Fake GPU" in lines[0]
    assert lines[-1].startswith("0 failures")
    assert len(lines) > 40
    assert all(line.startswith("ok ") for line in lines[1:-1])
    assert any("official.safetensors" in line for line in lines)
    assert "E_VERIFY" in lines[-2]


def test_without_a_gpu_it_says_that_it_is_skipped(df11: Path) -> None:
    done = device_check(df11, "--cuda-driver", "nothing.so")
    assert (done.returncode, done.stdout.split()[0]) == (2, "SKIP"), done.stdout + done.stderr
