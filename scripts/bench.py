"""Measures one compression unit against the official encoder: same weights, one core, one run, ratios.

Usage: make bench. The weights have a spread per row, as trained ones do.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support" / "cupy_cpu")]

from dfloat11.dfloat11_utils import encode_weights, get_32bit_codec, get_codec, get_luts  # noqa: E402

from support.tensors import bf16  # noqa: E402

ROWS, COLUMNS = 1024, 4096
ROUNDS = 3


def official_seconds(weights: np.ndarray) -> float:
    """The fastest of a few runs of the official encoder, without its output on the terminal."""
    tensor = torch.from_numpy(weights.view(np.int16)).view(torch.bfloat16)
    best = float("inf")
    for _ in range(ROUNDS):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            began = time.perf_counter()
            _, counts = get_codec(tensor)
            codec, _, table = get_32bit_codec(counts)
            get_luts(table)
            encode_weights([tensor], codec, 8, 512)
            best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.005, 0.08, (ROWS, 1))
    weights = bf16(rng.standard_normal((ROWS, COLUMNS)) * spread).array.reshape(-1)
    program = ROOT / "target" / "release" / "examples" / "time_unit"
    with tempfile.NamedTemporaryFile() as file:
        weights.tofile(file.name)
        runs = [["reference"], ["scalar"], []]
        ours = [json.loads(subprocess.check_output([program, file.name, "9", *kernel])) for kernel in runs]
    official = official_seconds(weights)
    rate = weights.size / 1e6
    print(f"one unit of {weights.size:,} weights, one core, memory to memory")
    print(f"{'':40}{'million weights/s':>18}{'times official':>16}")
    rows = [("official dfloat11 0.5.0, encode", official)]
    for run in ours:
        rows.append((f"ours, encode ({run['kernel']})", run["encode_seconds"]))
        rows.append((f"ours, decode and check ({run['kernel']})", run["check_seconds"]))
    for name, seconds in rows:
        print(f"{name:40}{rate / seconds:18.1f}{official / seconds:16.0f}")


if __name__ == "__main__":
    main()
