"""The official encoder, run in an environment that has it: a path of BF16 weights a line, an answer a line.

The answer: {"seconds": ...}.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support" / "cupy_cpu")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from dfloat11.dfloat11_utils import encode_weights, get_32bit_codec, get_codec, get_luts  # noqa: E402


def encode(path: Path) -> float:
    tensor = torch.from_numpy(np.fromfile(path, np.int16)).view(torch.bfloat16)
    # It draws a progress bar.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        began = time.perf_counter()
        _, counts = get_codec(tensor)
        codec, _, table = get_32bit_codec(counts)
        get_luts(table)
        encode_weights([tensor], codec, 8, 512)
        return time.perf_counter() - began


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps({"seconds": encode(Path(line.strip()))}), flush=True)


if __name__ == "__main__":
    main()
