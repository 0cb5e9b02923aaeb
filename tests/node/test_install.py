"""install.py in a copy of the pack, with stand-ins for cargo, pip and uv. Nothing is built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .stub_host import PACK

MISSING = "raise ModuleNotFoundError('No module named df11_native', name='df11_native')"
# Records how it was called and, as an installation would, replaces the module that Python finds.
PIP = """
import json, os, sys
if sys.argv[1:] == ["--version"]:
    sys.exit({absent})
with open(os.environ["DF11_TEST_RECORD"], "w") as file:
    target = os.environ.get("CARGO_TARGET_DIR", "")
    json.dump(dict(arguments=sys.argv[1:], target=target, there=os.path.isdir(target), path=os.environ["PATH"]), file)
with open({module!r}, "w") as file:
    file.write({installs!r})
sys.exit({status})
"""


@dataclass
class Machine:
    """A copy of the pack and a search path of our own."""

    base: Path
    pack: Path

    def tool(self, name: str, text: str, folder: str = "bin") -> Path:
        path = self.base / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def cargo(self, version: str, folder: str = "bin") -> Path:
        return self.tool("cargo", f"#!/bin/sh\necho 'cargo {version} (0123 2026-01-01)'\n", folder)

    def pip(self, *, absent: int = 0, installs: str = "PROTOCOL = 3", status: int = 0) -> str:
        module = str(self.base / "python" / "df11_native.py")
        text = PIP.format(absent=absent, module=module, installs=installs, status=status)
        self.tool("__init__.py", "", "python/pip")
        self.tool("__main__.py", text, "python/pip")
        return text

    def native(self, text: str) -> None:
        self.tool("df11_native.py", text, "python")

    def run(self, **environment: str) -> str:
        record = self.base / "record.json"
        done = subprocess.run(
            [sys.executable, self.pack / "install.py"],
            env={
                "PATH": str(self.base / "bin"),
                "HOME": str(self.base),
                "PYTHONPATH": str(self.base / "python"),
                "DF11_TEST_RECORD": str(record),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, "a failing install script takes the pack away"
        assert "Traceback" not in done.stderr
        return done.stdout

    @property
    def call(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.base / "record.json").read_text())
        return found

    @property
    def was_built(self) -> bool:
        return (self.base / "record.json").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    pack = tmp_path / "custom nodes" / "pack"
    pack.mkdir(parents=True)
    shutil.copy(PACK / "install.py", pack)
    (pack / "Cargo.toml").write_text('[workspace.package]\nversion = "0.1.0"\nrust-version = "1.89"\n')
    shutil.copytree(PACK / "comfy_node", pack / "comfy_node", ignore=shutil.ignore_patterns("__pycache__"))
    (pack / "rust").mkdir()
    (tmp_path / "bin").mkdir()
    made = Machine(tmp_path, pack)
    made.native(MISSING)
    made.pip()
    return made


def by_hand(machine: Machine) -> str:
    return f'{sys.executable} -m pip install --no-deps --force-reinstall "{machine.pack}"'


def test_stops_at_once_if_the_native_part_fits(machine: Machine) -> None:
    machine.native("PROTOCOL = 3")
    machine.cargo("1.99.0")
    assert "is installed and fits" in machine.run()
    assert not machine.was_built


@pytest.mark.parametrize("installed", [MISSING, "PROTOCOL = 0", "raise OSError('no such library')"])
def test_builds_with_cargo(machine: Machine, installed: str) -> None:
    machine.native(installed)
    cargo = machine.cargo("1.99.0")
    before = sorted(machine.pack.rglob("*"))
    assert "is built and installed. Restart ComfyUI." in machine.run()
    assert machine.call["arguments"] == ["install", "--no-deps", "--force-reinstall", str(machine.pack)]
    target = Path(str(machine.call["target"]))
    assert machine.call["there"] and machine.pack not in target.parents
    assert not target.exists(), "the build folder stayed behind"
    assert str(machine.call["path"]).split(os.pathsep)[0] == str(cargo.parent)
    assert sorted(machine.pack.rglob("*")) == before, "the pack's folder was written to"


def test_finds_cargo_where_rustup_puts_it(machine: Machine) -> None:
    cargo = machine.cargo("1.99.0", ".cargo/bin")
    assert "is built and installed" in machine.run()
    assert str(machine.call["path"]).split(os.pathsep)[0] == str(cargo.parent)


def test_without_cargo_says_what_to_do(machine: Machine) -> None:
    text = machine.run()
    assert "Rust's cargo was not found" in text and by_hand(machine) in text
    assert not machine.was_built


@pytest.mark.parametrize(
    ("version", "builds"), [("1.88.9", False), ("1.89.0", True), ("1.100.0", True), ("2.0.0", True)]
)
def test_an_older_cargo_is_named_as_the_cause(machine: Machine, version: str, builds: bool) -> None:
    machine.cargo(version)
    text = machine.run()
    assert machine.was_built == builds
    if not builds:
        assert f"cargo {version} (0123 2026-01-01) is too old: version 1.89 or newer is needed" in text
        assert by_hand(machine) in text


def test_a_cargo_that_does_not_run_is_named(machine: Machine) -> None:
    cargo = machine.tool("cargo", "#!/bin/sh\necho 'no default toolchain' >&2\nexit 1\n")
    text = machine.run()
    assert f"{cargo} does not run" in text and by_hand(machine) in text
    assert not machine.was_built


def test_a_folder_to_build_in_is_kept(machine: Machine) -> None:
    machine.cargo("1.99.0")
    target = machine.base / "built"
    target.mkdir()
    assert "is built and installed" in machine.run(CARGO_TARGET_DIR=str(target))
    assert machine.call["target"] == str(target) and target.is_dir()


def test_the_switch_forbids_the_build(machine: Machine) -> None:
    machine.cargo("1.99.0")
    assert "DF11_NO_BUILD=1 forbids the build." in machine.run(DF11_NO_BUILD="1")
    assert not machine.was_built


def test_a_copy_without_sources_is_not_built(machine: Machine) -> None:
    machine.cargo("1.99.0")
    (machine.pack / "rust").rmdir()
    assert "has no Rust sources" in machine.run()
    assert not machine.was_built


def test_uses_uv_where_pip_is_absent(machine: Machine) -> None:
    machine.cargo("1.99.0")
    machine.tool("uv", f"#!{sys.executable}\n{machine.pip(absent=1)}")
    assert "is built and installed" in machine.run()
    start = ["pip", "install", "--python", sys.executable]
    assert machine.call["arguments"] == [*start, "--no-deps", "--force-reinstall", str(machine.pack)]


def test_without_pip_and_uv_says_so(machine: Machine) -> None:
    machine.cargo("1.99.0")
    machine.pip(absent=1)
    assert "has neither pip nor uv" in machine.run()


def test_a_failed_build_is_said_with_the_command(machine: Machine) -> None:
    machine.cargo("1.99.0")
    machine.pip(status=3, installs=MISSING)
    text = machine.run()
    assert "The build failed with status 3" in text and by_hand(machine) in text


def test_a_build_that_does_not_fit_is_not_called_a_success(machine: Machine) -> None:
    machine.cargo("1.99.0")
    machine.pip(installs="PROTOCOL = 0")
    text = machine.run()
    assert "interface 0 instead of 3" in text and "is built and installed" not in text


def test_a_surprise_still_exits_with_0(machine: Machine) -> None:
    machine.tool("cargo", "#!/nonexistent/interpreter\n")
    assert "the native part was not built: FileNotFoundError" in machine.run()
