"""Tries the installed package as its user would, with nothing but Python: try_wheel.py. Runs on Python 3.9 and later.

`df11 env`, then a small checkpoint there and back: compressed, verified against its source, restored byte for byte.
"""

import json
import random
import struct
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ARCHITECTURE = """
schema = 1
id = "Toy"
name = "a toy"
source = "made up to try the program"
[loader]
node = "ToyLoader"
pack = "toys"
url = "https://example.org"
[detect]
all = ["toy.marker"]
[[units]]
pattern = 'one\\.\\d+'
attributes = []
"""
WEIGHTS = 300_000


def df11(*arguments):
    """Runs the command that the package installed."""
    program = Path(sysconfig.get_path("scripts")) / ("df11.exe" if sys.platform == "win32" else "df11")
    done = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # As it is: not every console has every letter.
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    if done.returncode:
        sys.exit(f"df11 {arguments[0]} ended with {done.returncode}")


def checkpoint():
    """Weights as trained ones are spread, cut to BF16."""
    generator = random.Random(0)
    weights = [struct.pack("<f", generator.gauss(0, 0.02))[2:] for _ in range(WEIGHTS)]
    header = {
        "toy.marker": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "one.0.weight": {"dtype": "BF16", "shape": [WEIGHTS], "data_offsets": [1, 1 + 2 * WEIGHTS]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" + b"".join(weights)


def main():
    df11("env")
    with tempfile.TemporaryDirectory() as folder:
        # A name that not every code page has.
        base = Path(folder, "mod\u00e8les \u6a21\u578b")
        base.mkdir()
        (base / "toy.toml").write_text(ARCHITECTURE)
        source, small, again = (
            base / name for name in ("toy.safetensors", "toy-DF11.safetensors", "again.safetensors")
        )
        source.write_bytes(checkpoint())
        df11("compress", source, "--architectures", base)
        df11("verify", small, "--against", source, "--architectures", base)
        df11("restore", small, "-o", again)
        if again.read_bytes() != source.read_bytes():
            sys.exit("the restored file is not the original")
        if not small.stat().st_size < 0.8 * source.stat().st_size:
            sys.exit("the compressed file is not smaller")
    sys.stdout.write("all is well\n")


if __name__ == "__main__":
    main()
