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


def run_json(df11: Path, *arguments: object) -> dict[str, Any]:
    """A `df11` command with `--json`; raises CommandFailed."""
    command = [str(part) for part in (df11, *arguments, "--json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailed(done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def compress(df11: Path, source: Path, target: Path, *options: object) -> dict[str, Any]:
    """`df11 compress` with its JSON report; raises CommandFailed."""
    return run_json(df11, "compress", source, "-o", target, *options)
