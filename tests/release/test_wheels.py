"""The wheels that can be made here, and which one an installer takes."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import fallback_wheel
import project

ROOT = Path(__file__).parents[2]
MADE = ROOT / "dist" / "release"
(LINUX_TAG,) = (tag for tag in project.NATIVE_TAGS if tag.endswith("manylinux_2_17_x86_64"))
NATIVE = MADE / project.wheel_name(LINUX_TAG)
PURE = MADE / project.wheel_name(project.PURE_TAG)
OLDEST_GLIBC = (2, 17)


def member(wheel: Path, ending: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(ending))
        return archive.read(name)


def metadata(wheel: Path) -> Message:
    return email.message_from_bytes(member(wheel, ".dist-info/METADATA"))


def test_there_are_two_of_one_version() -> None:
    assert {path.name for path in MADE.glob("*.whl")} == {NATIVE.name, PURE.name}


def test_the_native_one_runs_on_any_linux_of_the_last_decade() -> None:
    library = member(NATIVE, "df11_native.abi3.so")
    needed = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    assert needed and max(needed) <= OLDEST_GLIBC
    tags = re.findall(r"^Tag: (.*)$", member(NATIVE, ".dist-info/WHEEL").decode(), re.MULTILINE)
    assert set(tags) == {f"cp39-abi3-{system}" for system in LINUX_TAG.removeprefix("cp39-abi3-").split(".")}


def test_it_asks_for_no_library_that_a_system_may_lack(tmp_path: Path) -> None:
    file = tmp_path / "library.so"
    file.write_bytes(member(NATIVE, "df11_native.abi3.so"))
    text = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    found = {name.split(".so")[0] for name in re.findall(r"NEEDED.*\[(.+?)\]", text)}
    assert found <= {"libc", "libm", "libdl", "libpthread", "librt", "libgcc_s", "ld-linux-x86-64"}


def test_both_describe_themselves_alike() -> None:
    native, pure = metadata(NATIVE), metadata(PURE)
    assert sorted(native.items()) == sorted(pure.items())
    assert native.get_payload().strip() == pure.get_payload().strip()
    assert member(NATIVE, "entry_points.txt").strip() == member(PURE, "entry_points.txt").strip()


def test_the_fallback_is_made_alike_twice(tmp_path: Path) -> None:
    assert fallback_wheel.write(tmp_path).read_bytes() == PURE.read_bytes()


# Platform and binary interface of an installer; the wheel that it must take.
CHOICES = {
    "manylinux2014_x86_64 abi3": LINUX_TAG,
    "manylinux_2_28_aarch64 abi3": "cp39-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64",
    "win_amd64 abi3": "cp39-abi3-win_amd64",
    "macosx_14_0_arm64 abi3": "cp39-abi3-macosx_11_0_arm64",
    "win_arm64 abi3": project.PURE_TAG,
    "musllinux_1_2_x86_64 abi3": project.PURE_TAG,
    # Without the global lock: such a Python takes no abi3.
    "manylinux2014_x86_64 cp313t": project.PURE_TAG,
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole release; what cannot be built here has the right name only."""
    folder = tmp_path_factory.mktemp("release")
    for tag in project.NATIVE_TAGS:
        shutil.copy(PURE, folder / project.wheel_name(tag))
    shutil.copy(PURE, folder)
    return folder


@pytest.mark.parametrize("installer", CHOICES)
def test_an_installer_takes_the_right_one(release: Path, tmp_path: Path, installer: str) -> None:
    system, interface = installer.split()
    # What pip itself accepts on a platform; --platform alone means no other.
    systems = [system, *(["manylinux2014_aarch64"] if "aarch64" in system else [])]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-index", "--no-deps", "--find-links", release]
    command += ["--only-binary", ":all:", "--python-version", "3.13", "--implementation", "cp", "--abi", interface]
    for name in systems:
        command += ["--platform", name]
    subprocess.run([*command, "--dest", tmp_path, "dfloat11-compress"], check=True)
    assert [path.name for path in tmp_path.iterdir()] == [project.wheel_name(CHOICES[installer])]
