"""Writes the registry's archive: archive.py FILE. It holds the tracked files that .comfyignore does not match.

The registry's own tool makes the same when it publishes; this one is looked at before. Same input, same bytes.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from project import ROOT


def git_files(root: Path, *options: str) -> set[str]:
    command = ["git", "ls-files", "-z", "--cached", *options]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return set(filter(None, done.stdout.split("\0")))


def members(root: Path = ROOT) -> list[str]:
    """Paths in the archive. Git itself applies the patterns, as both use the same."""
    return sorted(git_files(root) - git_files(root, "--ignored", "--exclude-from=.comfyignore"))


def write(target: Path, root: Path = ROOT) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in members(root):
            # Without the file's own time and rights.
            archive.writestr(zipfile.ZipInfo(name), (root / name).read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
