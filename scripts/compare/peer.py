"""One other compressor, run in its own environment: `peer.py NAME THREADS`, then a path a line.

Answers a line each: {"seconds": ..., "bytes": ...}. zipnn and zstd work from memory to memory; zipnn overwrites what it
is given, so it gets a copy. lmzip works from file to file.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def zipnn(threads: int) -> Callable[[Path], tuple[float, int]]:
    from zipnn import ZipNN

    def compress(path: Path) -> tuple[float, int]:
        data = bytearray(path.read_bytes())
        compressor = ZipNN(method="HUFFMAN", input_format="byte", bytearray_dtype="bfloat16", threads=threads)
        began = time.perf_counter()
        result = compressor.compress(data)
        return time.perf_counter() - began, len(result)

    return compress


def zstd(threads: int) -> Callable[[Path], tuple[float, int]]:
    from zstandard import ZstdCompressor

    def compress(path: Path) -> tuple[float, int]:
        data = path.read_bytes()
        compressor = ZstdCompressor(level=-1, threads=threads)
        began = time.perf_counter()
        result = compressor.compress(data)
        return time.perf_counter() - began, len(result)

    return compress


def lmzip(threads: int) -> Callable[[Path], tuple[float, int]]:
    import lmz

    def compress(path: Path) -> tuple[float, int]:
        result = path.with_suffix(".lmz")
        began = time.perf_counter()
        lmz.compress(str(path), str(result), workers=threads)
        seconds = time.perf_counter() - began
        size = result.stat().st_size
        result.unlink()
        return seconds, size

    return compress


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    compress = {"zipnn": zipnn, "zstd": zstd, "lmzip": lmzip}[name](threads)
    for line in sys.stdin:
        seconds, size = compress(Path(line.strip()))
        print(json.dumps({"seconds": seconds, "bytes": size}), flush=True)


if __name__ == "__main__":
    main()
