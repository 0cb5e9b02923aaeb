"""Runs a program whose file operations fail, come back short, or take long. See `faults.c`."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CODE = Path(__file__).with_name("faults.c")


def preloaded(code: Path, place: Path) -> Path:
    """A library in `place` to be preloaded into a program, compiled; skips the test where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or os.uname().sysname != "Linux":
        pytest.skip("SKIP faults are injected by a library that needs a C compiler and Linux")
    library = (place / code.name).with_suffix(".so")
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, code, "-ldl"]
    subprocess.run(command, check=True)
    return library


@dataclass(frozen=True)
class Faults:
    """The library that is preloaded, and the folder whose files it looks at."""

    library: Path
    folder: Path
    counts: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", self.library.with_name("counts"))

    @classmethod
    def build(cls, place: Path, folder: Path) -> "Faults":
        """Compiles the library into `place`; skips the test where that is not possible."""
        return cls(preloaded(CODE, place), folder)

    def environment(self, rules: str = "", clock: str = "") -> dict[str, str]:
        """What makes a program meet the rules, and see the wall clock jump by so many seconds at each look."""
        self.counts.unlink(missing_ok=True)
        return {
            "LD_PRELOAD": str(self.library),
            "DF11_FAULTS": rules,
            "DF11_FOLDER": str(self.folder),
            "DF11_COUNTS": str(self.counts),
            "DF11_CLOCK": clock,
        }

    def calls(self) -> dict[str, int]:
        """The number of calls of the last program, by kind."""
        counts = self._counts()
        return {kind: count for kind, count in counts.items() if kind != "journal-us"}

    def journal_seconds(self) -> float:
        """How long the last program wrote and flushed journals."""
        return self._counts()["journal-us"] / 1e6

    def _counts(self) -> dict[str, int]:
        lines = [line.split() for line in self.counts.read_text().splitlines() if line != "fired"]
        return {kind: int(count) for kind, count in lines}

    def have_fired(self) -> bool:
        """Whether the last program met a rule."""
        return self.counts.exists() and "fired" in self.counts.read_text()
