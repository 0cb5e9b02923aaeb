"""Has a real GPU decode DF11 units of every kind: device_check.py DF11 [--kernel-ptx FILE] [--also FOLDER].

For a machine with an NVIDIA GPU that has nothing else: the `df11` program, Python 3.9 or later, and `decode.ptx` of
`dfloat11` 0.5.0 are enough. It makes about 20 small checkpoints, compresses each with both headers, and runs
`df11 verify --level kernel --against` on the results; a checkpoint that was changed afterwards must fail.
`--also` names a folder of further DF11 files, such as those of the official tool, to check without a source.

Exit code 0: all as expected; 1: something was not; 2: SKIP, there is no GPU or no kernel.
"""

import argparse
import datetime
import json
import math
import operator
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCHITECTURE = r"""
schema = 1
id = "DeviceCheck"
name = "units for a device check"
source = "made up"

[loader]
node = "None"
pack = "none"
url = "https://example.org"

[detect]
all = ["check.marker"]

[[units]]
pattern = 'three\.\d+'
attributes = ["a", "b", "c"]

[[units]]
pattern = 'one\.\d+'
attributes = []
"""
CHUNK_BYTES = 4096
EXPONENTS = bytes(exponent << 7 & 0x80 for exponent in range(256)), bytes(exponent >> 1 for exponent in range(256))
MANTISSA, SIGN = bytes(b & 0x7F for b in range(256)), bytes(b & 0x80 for b in range(256))


def weights(exponents: bytes, seed: int = 1) -> bytes:
    """BF16 weights of these exponents, with random signs and mantissas."""
    rest = random.Random(seed).randbytes(len(exponents))
    both = bytearray(2 * len(exponents))
    both[0::2] = bytes(map(operator.or_, exponents.translate(EXPONENTS[0]), rest.translate(MANTISSA)))
    both[1::2] = bytes(map(operator.or_, exponents.translate(EXPONENTS[1]), rest.translate(SIGN)))
    return bytes(both)


def drawn(count: int, shares: "dict[int, float]", seed: int = 1) -> bytes:
    """Exponents in these shares, in random order."""
    return bytes(random.Random(seed).choices(list(shares), list(shares.values()), k=count))


def trained(count: int, seed: int = 1) -> bytes:
    """Exponents as trained weights have them: each half as frequent as the one above."""
    return drawn(count, {122 - step: 2.0**-step for step in range(30)}, seed)


def write(path: Path, tensors: "dict[str, bytes]") -> None:
    """A checkpoint of one-dimensional BF16 tensors."""
    header, data = {}, b""
    for name, tensor in {"check.marker": b"\x80\x3f", **tensors}.items():
        header[name] = {
            "dtype": "BF16",
            "shape": [len(tensor) // 2],
            "data_offsets": [len(data), len(data) + len(tensor)],
        }
        data += tensor
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def tensor_bytes(path: Path) -> "dict[str, int]":
    """The sizes of a file's tensors."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    header.pop("__metadata__", None)
    return {name: entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items()}


class Check:
    """One run of the program after the other, in a folder of its own."""

    def __init__(self, df11: str, folder: Path, kernel: "list[str]") -> None:
        self.df11, self.folder, self.kernel = df11, folder, kernel
        (folder / "architectures").mkdir()
        (folder / "architectures" / "check.toml").write_text(ARCHITECTURE)
        self.definitions = ["--architectures", str(folder / "architectures")]
        self.failures = 0

    def run(self, *arguments: object) -> "tuple[int, dict]":
        command = [self.df11, *map(str, arguments), *self.definitions, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "{}")

    def compress(self, tensors: "dict[str, bytes]", header: str = "self-describing") -> "tuple[Path, Path]":
        source, target = self.folder / "source.safetensors", self.folder / "target.safetensors"
        write(source, tensors)
        code, report = self.run("compress", source, "-o", target, "--header", header, "--if-exists", "replace")
        if code:
            sys.exit(f"compress ended with {code}: {report}")
        return source, target

    def verify(self, target: Path, source: "Path | None") -> "tuple[int, dict]":
        against = ["--against", source] if source else []
        return self.run("verify", target, "--level", "kernel", *against, *self.kernel)

    def say(self, name: str, expected: int, outcome: "tuple[int, dict]", seconds: float) -> None:
        """One line, and a failure where the exit code is another than expected."""
        code, report = outcome
        error = report.get("error", {})
        found = (
            f"{report.get('weights', 0):>10} weights" if code == 0 else f"{error.get('code')} {error.get('message')}"
        )
        self.failures += code != expected
        print(f"{'ok' if code == expected else 'FAILED':6} {name:48} {seconds:6.2f} s  {found}", flush=True)

    def tail(self, wanted: str) -> bytes:
        """Exponents whose last code reaches over the border of a kernel chunk, and ends behind it as is wanted."""
        for seed in range(50):
            shares = {122 - step: 2.0**-step for step in range(14)}
            pool = drawn(17_000, shares, seed)

            def sizes(count: int, pool: bytes = pool) -> "tuple[bytes, int, int]":
                # The rarest exponent, with the longest code, comes last.
                exponents = pool[:count] + b"\x5a"
                _, target = self.compress({"one.0.weight": weights(exponents)})
                found = tensor_bytes(target)
                return exponents, found["one.0.encoded_exponent"], found["one.0.output_positions"] // 4

            # About two bits a weight.
            centre = 16_384 + (CHUNK_BYTES + 1 - sizes(16_384)[1]) * 4
            for count in range(centre - 20, centre + 20):
                exponents, codes, entries = sizes(count)
                aligned = entries == math.ceil(codes / CHUNK_BYTES)
                if codes == CHUNK_BYTES + 1 and aligned == (wanted == "aligned"):
                    return exponents
        sys.exit(f"no unit with a tail that is {wanted} was found")

    def units(self) -> "dict[str, dict[str, bytes]]":
        """The checkpoints, by what is peculiar to them."""
        one = {f"{count} weights": trained(count) for count in (1, 2, 7, 31)}
        one["like a trained model"] = trained(3_000_000)
        one["last code over a border, byte-aligned"] = self.tail("aligned")
        one["last code over a border, not aligned"] = self.tail("not aligned")
        one["long codes"] = drawn(2_000_000, {122 - step: 2.0**-step for step in range(60)}) + bytes(range(30, 90))
        one["more than 17 tables"] = drawn(400_000, {100: 239.0, **dict.fromkeys(range(239), 1.0)})
        one["240 exponents, evenly"] = drawn(400_000, dict.fromkeys(range(240), 1.0))
        one["one exponent, 23,550 weights, 48 KiB"] = b"\x78" * 23_550
        for count in (23_551, 32_767, 32_768, 32_769):
            one[f"one exponent, {count:,} weights"] = b"\x78" * count
        one["near-constant, below 48 KiB"] = drawn(600_000, {120: 0.58, 110: 0.42})
        one["near-constant, about 48 KiB"] = drawn(600_000, {120: 0.61, 110: 0.39})
        one["near-constant, above 48 KiB"] = drawn(600_000, {120: 0.8, 110: 0.2})
        one["near-constant, one weight in 30,000"] = drawn(600_000, {120: 29_999.0, 110: 1.0})
        units = {name: {"one.0.weight": weights(exponents)} for name, exponents in one.items()}
        sizes = {"a": 400_001, "b": 1, "c": 250_007}
        units["three tensors, and a second unit"] = {
            **{f"three.0.{name}.weight": weights(trained(size), size) for name, size in sizes.items()},
            "one.3.weight": weights(trained(50_000)),
        }
        return units


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("df11")
    parser.add_argument("--kernel-ptx")
    parser.add_argument("--also", type=Path)
    parser.add_argument("--cuda-driver", help="a stand-in for the driver")
    options = parser.parse_args()
    kernel = [
        f"--{name}={value}"
        for name, value in (("kernel-ptx", options.kernel_ptx), ("cuda-driver", options.cuda_driver))
        if value
    ]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(str(Path(options.df11).resolve()), Path(folder), kernel)
        source, target = check.compress({"one.0.weight": weights(trained(1000))})
        code, report = check.verify(target, source)
        if code == 2:
            print(f"SKIP {report['error']['message']}")
            return 2
        print(f"{datetime.date.today()}, {report.get('gpu')}, {report.get('kernel_file')}")
        for name, tensors in check.units().items():
            for header in ("self-describing", "official"):
                source, target = check.compress(tensors, header)
                start = time.monotonic()
                outcome = check.verify(target, source)
                check.say(f"{name}, {header}", 0, outcome, time.monotonic() - start)
        for file in sorted(options.also.glob("*.safetensors")) if options.also else []:
            start = time.monotonic()
            check.say(file.name, 0, check.verify(file, None), time.monotonic() - start)
        source, target = check.compress({"one.0.weight": weights(trained(1000), 1)}, "official")
        write(source, {"one.0.weight": weights(trained(1000), 2)})
        check.say("another source: must fail", 4, check.verify(target, source), 0)
    print(f"{check.failures} failures, {time.monotonic() - started:.0f} seconds")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
