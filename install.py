"""Builds the native part from source into the interpreter that runs this script.

ComfyUI-Manager runs it after a git install; by hand: `python install.py`. It always exits with 0, because a failing
install script takes the whole pack away; without the native part the nodes are there and say what is missing.
Nothing is written into the pack's folder. `DF11_NO_BUILD=1` switches the build off; `CARGO_TARGET_DIR` is a folder to
build in and to keep.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BUILD_SECONDS = 1800


def say(text: str) -> None:
    sys.stdout.write(f"DFloat11 Compress: {text}\n")
    sys.stdout.flush()


def python(*arguments: str) -> list[str]:
    """A command line for this interpreter, that keeps out the user's site-packages if it was started so."""
    return [sys.executable, *(["-s"] if sys.flags.no_user_site else []), *arguments]


def native_problem() -> str:
    """What is wrong with the installed native part; empty if nothing is.

    Asked in another process: a library that is loaded in this one could not be replaced on Windows.
    """
    code = "from comfy_node import native; p = native.problem(); print(p.sentence if p else '', end='')"
    # Without -B the question would leave __pycache__ folders in the pack.
    done = subprocess.run(python("-B", "-c", code), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.stdout if done.returncode == 0 else "The pack's own files do not run in this Python."


def find_cargo() -> str | None:
    """Cargo on PATH or where rustup puts it: a ComfyUI started from a desktop often has a short PATH."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return shutil.which("cargo") or shutil.which("cargo", path=str(home / "bin"))


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def obstacle(cargo: str | None) -> str:
    """Why a build cannot start; empty if it can."""
    if os.environ.get("DF11_NO_BUILD") == "1":
        return "DF11_NO_BUILD=1 forbids the build."
    manifest = ROOT / "Cargo.toml"
    if not manifest.is_file() or not (ROOT / "rust").is_dir():
        return "This copy of the pack has no Rust sources."
    if cargo is None:
        return "Rust's cargo was not found; https://rustup.rs has it."
    needed = re.search(r'^rust-version\s*=\s*"([\d.]+)"', manifest.read_text(encoding="utf-8"), re.MULTILINE)
    asked = subprocess.run([cargo, "--version"], stdout=subprocess.PIPE, text=True)
    found = asked.stdout.strip()
    if asked.returncode != 0 or not found:
        return f"{cargo} does not run; what it says is above. `rustup default stable` may mend it."
    if needed and numbers(found) < numbers(needed[1]):
        return f"{found} is too old: version {needed[1]} or newer is needed. `rustup update` brings it."
    return ""


def installer() -> list[str] | None:
    """The start of an install command for this interpreter: pip, or uv where pip is absent."""
    pip = python("-m", "pip")
    if subprocess.run([*pip, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return [*pip, "install"]
    uv = shutil.which("uv")
    return [uv, "pip", "install", "--python", sys.executable] if uv else None


def build(cargo: str, command: list[str]) -> str:
    """Builds and installs. Returns what went wrong; empty if nothing did."""
    say("building the native part, which takes a few minutes ...")
    own = os.environ.get("CARGO_TARGET_DIR")
    target = own or tempfile.mkdtemp(prefix="df11-build-")
    path = os.pathsep.join([str(Path(cargo).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": target}
    try:
        done = subprocess.run(command, cwd=tempfile.gettempdir(), env=environment, timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        return f"The build did not end within {BUILD_SECONDS // 60} minutes."
    finally:
        if not own:
            shutil.rmtree(target, ignore_errors=True)
    return "" if done.returncode == 0 else f"The build failed with status {done.returncode}; its output is above."


def main() -> None:
    if not native_problem():
        say("the native part is installed and fits.")
        return
    cargo = find_cargo()
    start = installer()
    command = [*(start or [*python("-m", "pip"), "install"]), "--no-deps", "--force-reinstall", str(ROOT)]
    trouble = obstacle(cargo)
    if not trouble and start is None:
        trouble = "This Python has neither pip nor uv."
    if not trouble and cargo:
        trouble = build(cargo, command) or native_problem()
    if trouble:
        by_hand = subprocess.list2cmdline(command)
        say(f"the native part was not built. {trouble} To build it by hand, run this and restart ComfyUI:\n  {by_hand}")
    else:
        say("the native part is built and installed. Restart ComfyUI.")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        say(f"the native part was not built: {error!r}. The nodes will say so too.")
