"""Runs the `df11` command."""

import json
import subprocess
from pathlib import Path
from typing import Any


class CommandFailed(Exception):
    """A `df11` run that did not end with 0."""

    def __init__(self, status: int, output: str, errors: str) -> None:
        super().__init__(f"exit code {status}\n{output}\n{errors}")
        self.status = status
        self.output = output


def compress(df11: Path, source: Path, target: Path, *options: object) -> dict[str, Any]:
    """`df11 compress` with its JSON report; raises CommandFailed."""
    command = [df11, "compress", source, "-o", target, "--json", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailed(done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)
