"""Resolve every environment anew and write the lock files. Run by hand, when a version shall move.

Usage: python3.11 scripts/envs/relock.py. The locks hold exact versions and hashes and no registry address.
"""

import re
import sys
import tempfile
from pathlib import Path

from environments import ENVIRONMENTS, ENVS, LOCKS, REQUIREMENTS, SourceDistribution, lock
from tools import UV, install_tools, run, unpack_comfyui

# Large, and only shown in the browser.
NOT_NEEDED = re.compile(r"(comfyui-workflow-templates|comfyui-embedded-docs|comfy-angle)\b")


def compile_lock(requirements: Path, target: Path) -> None:
    """Resolve `requirements` for Linux x86-64 and write `target`."""
    options = ["--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--upgrade", "--python-version", "3.11"]
    options += ["--python-platform", "x86_64-manylinux_2_36", "--overrides", REQUIREMENTS / "overrides.txt"]
    run(UV, "pip", "compile", *options, requirements, "-o", target)


def comfyui_requirements(source: SourceDistribution, directory: Path) -> Path:
    """ComfyUI's own requirements, cut, plus what the official loader needs, as one requirements file."""
    unpack_comfyui(source, directory)
    lines = (directory / "requirements.txt").read_text().splitlines()
    kept = [line for line in lines if not NOT_NEEDED.match(line)]
    result = directory / "all.in"
    result.write_text("\n".join([*kept, f"-r {REQUIREMENTS / 'official.in'}", ""]))
    return result


def main() -> None:
    if not UV.exists():
        # The very first lock of the tools themselves is made by a uv that is not pinned yet.
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", ENVS / "tools", "-r", REQUIREMENTS / "uv.in")
    compile_lock(REQUIREMENTS / "uv.in", LOCKS / "uv.txt")
    install_tools()
    for name, source in ENVIRONMENTS.items():
        if lock(name).stem != name:
            continue
        with tempfile.TemporaryDirectory(dir=ENVS) as temp:
            requirements = comfyui_requirements(source, Path(temp)) if source else REQUIREMENTS / f"{name}.in"
            compile_lock(requirements, lock(name))


if __name__ == "__main__":
    main()
