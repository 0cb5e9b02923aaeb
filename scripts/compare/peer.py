"""One other compressor, run in its own environment: `peer.py NAME THREADS`, then a path a line.

Answers a line each: {"seconds": ..., "bytes": ...}. zipnn and zstd work from memory to memory; zipnn overwrites what it
is given, so it gets a copy. lmzip works from file to file; lmzip-memory is its encoder alone, from memory to memory, as
its own benchmark calls it.
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


def lmzip_memory(threads: int) -> Callable[[Path], tuple[float, int]]:
    import lmz
    from lmz.codec import encode_chunk
    from lmz.parallel import ordered_map
    from lmz.planner import chunkify, probe

    def compress(path: Path) -> tuple[float, int]:
        size = path.stat().st_size
        with path.open("rb") as file:
            layout = probe(file, size)
        data = path.read_bytes()
        chunks = [(data[chunk[0] : chunk[1]], chunk) for chunk in chunkify(layout, size, lmz.DEFAULT_CHUNK_SIZE)]

        def encode(task: tuple[bytes, tuple[int, ...]]) -> int:
            chunk, (_, _, width, kind, _, block, _) = task
            parts = encode_chunk(chunk, width, lmz.DEFAULT_LEVEL, False, kind=kind, btype=block)[0]
            return sum(map(len, parts))

        began = time.perf_counter()
        result = sum(ordered_map(encode, chunks, threads))
        return time.perf_counter() - began, result

    return compress


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    peers = {"zipnn": zipnn, "zstd": zstd, "lmzip": lmzip, "lmzip-memory": lmzip_memory}
    compress = peers[name](threads)
    for line in sys.stdin:
        seconds, size = compress(Path(line.strip()))
        print(json.dumps({"seconds": seconds, "bytes": size}), flush=True)


if __name__ == "__main__":
    main()
