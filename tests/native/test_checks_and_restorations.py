"""`verify` and `restore`: the same jobs as compressions, with reports of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import df11_native
import pytest

from support.tensors import read_header, write_safetensors
from support.tiny_models import tiny_model

from .conftest import Folder
from .test_errors import error_of, place
from .test_jobs import watch
from .test_priority import nice_of_threads

LEVELS = ["structure", "hash", "sample", "full"]
Start = Callable[..., df11_native.Job]


@pytest.fixture
def made(folder: Folder) -> Folder:
    """The folder with source and result."""
    folder.start().result()
    return folder


@pytest.fixture
def large(folder: Folder) -> Folder:
    """The same with 60 MB, so that jobs can be seen at work."""
    write_safetensors(folder.source, tiny_model("Flux", double=30, single=30))
    folder.start().result()
    return folder


def restore_anew(folder: Folder, **options: Any) -> df11_native.Job:
    return df11_native.restore(folder.target, folder.path / "restored.safetensors", **options)


def verify(folder: Folder, **options: Any) -> df11_native.Job:
    return df11_native.verify(folder.target, **options)


def flip(path: Path, tensor: str) -> None:
    """Changes one byte in the middle of a tensor."""
    start, end = read_header(path)[tensor]["data_offsets"]
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        at = 8 + length + (start + end) // 2
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def command(df11: Path, *arguments: str | Path) -> dict[str, Any]:
    done = subprocess.run([df11, "--json", *arguments], capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_a_check_tells_what_the_command_tells(made: Folder, df11: Path, level: str) -> None:
    report = verify(made, level=level, samples=3, seed=7).result()
    assert (report["schema"], report["level"]) == ("df11.verify/1", level)
    told = command(df11, "verify", made.target, "--level", level, "--samples", "3", "--seed", "7")
    assert report | {"seconds": 0} == told | {"seconds": 0}


def test_a_check_against_the_source(made: Folder) -> None:
    report = verify(made, against=made.source).result()
    assert report["against"] == str(made.source)
    assert report["chunks_decoded"] == report["chunks"] > 0
    tensors = tiny_model("Flux", seed=1)
    made.write(tensors)
    error = error_of(verify(made, against=made.source).result, df11_native.VerificationError, "E_VERIFY")
    assert error.tensor


@pytest.mark.parametrize("level", ["hash", "full"])
def test_a_damaged_file_is_named_with_its_place(made: Folder, level: str) -> None:
    flip(made.target, "double_blocks.0.sign_mantissa")
    job = verify(made, level=level)
    for _ in range(2):
        error = error_of(job.result, df11_native.VerificationError, "E_VERIFY")
        assert place(error)[0] == str(made.target)
        assert "double_blocks.0" in str(error)


def test_a_restoration_is_the_source_and_tells_what_the_command_tells(made: Folder, df11: Path) -> None:
    report = restore_anew(made).result()
    restored = made.path / "restored.safetensors"
    assert restored.read_bytes() == made.source.read_bytes()
    assert (report["schema"], report["status"], report["exact"]) == ("df11.restore/1", "done", True)
    assert report["target"] == str(restored)
    told = command(df11, "restore", made.target, "--output", restored, "--if-exists", "replace")
    assert report | {"seconds": 0} == told | {"seconds": 0}
    assert restore_anew(made).result()["status"] == "already-done"


def test_a_restoration_finds_its_own_name(made: Folder) -> None:
    before = made.source.read_bytes()
    made.source.unlink()
    assert df11_native.restore(str(made.target)).result()["target"] == str(made.source)
    assert made.source.read_bytes() == before


def test_targets_of_a_restoration(made: Folder) -> None:
    made.source.write_bytes(b"somebody's file")
    kind = df11_native.TargetExistsError
    error = error_of(df11_native.restore(made.target).result, kind, "E_TARGET_EXISTS")
    assert place(error) == (str(made.source), None, None, None)
    error_of(lambda: df11_native.restore(made.target, if_exists="error"), kind, "E_TARGET_EXISTS")
    numbered = df11_native.restore(made.target, if_exists="number").result()
    assert numbered["target"] == str(made.path / "model-2.safetensors")
    assert made.source.read_bytes() == b"somebody's file"


@pytest.mark.parametrize("start", [df11_native.verify, df11_native.restore])
def test_what_the_header_shows_is_raised_at_once(folder: Folder, start: Start) -> None:
    error = error_of(lambda: start(folder.source), df11_native.RefusedError, "E_NOT_DF11")
    assert place(error) == (str(folder.source), None, None, None)
    error_of(lambda: start(folder.path / "none"), df11_native.Df11Error, "E_READ")
    assert folder.is_clean()


@pytest.mark.parametrize(
    ("start", "option", "known"),
    [(df11_native.verify, "level", "sample"), (df11_native.restore, "if_exists", "number")],
)
def test_wrong_words(made: Folder, start: Start, option: str, known: str) -> None:
    for value in ("", "nonsense", "FULL"):
        error = error_of(lambda value=value: start(made.target, **{option: value}), df11_native.Df11Error, "E_OPTION")
        assert known in str(error), "what is allowed is said"


@pytest.mark.parametrize("start", [df11_native.verify, df11_native.restore])
def test_wrong_numbers(made: Folder, start: Start) -> None:
    error_of(lambda: start(made.target, threads=0), df11_native.Df11Error, "E_OPTION")
    with pytest.raises(OverflowError):
        start(made.target, threads=-1)
    with pytest.raises(OverflowError):
        df11_native.verify(made.target, seed=-1)


@pytest.mark.parametrize("start", [verify, restore_anew])
def test_snapshots_only_go_forward(large: Folder, start: Start) -> None:
    seen = watch(start(large, threads=1))
    for before, now in zip(seen, seen[1:], strict=False):
        assert before.bytes_in <= now.bytes_in and before.unit <= now.unit and before.elapsed < now.elapsed
    last = seen[-1]
    assert (last.phase, last.unit, last.units, last.unit_name) == ("done", 60, 60, "")
    assert last.bytes_in == last.bytes_total
    assert len({now.bytes_in for now in seen}) > 3, "it was seen at work"


@pytest.mark.parametrize("start", [verify, restore_anew])
def test_cancel_leaves_nothing(large: Folder, start: Start) -> None:
    before = large.files()
    cancelled = 0
    for wait in (0, 0, 0.005, 0.01):
        job = start(large, threads=1)
        time.sleep(wait)
        job.cancel()
        asked = time.monotonic()
        assert job.join(5) and time.monotonic() - asked < 1
        try:
            job.result()
        except df11_native.CancelledError as error:
            cancelled += 1
            assert error.code == "E_CANCELLED"
            assert large.files() == before
    assert cancelled > 1


@pytest.mark.parametrize("start", [verify, restore_anew])
@pytest.mark.parametrize("low_priority", [True, False])
def test_priority(large: Folder, start: Start, low_priority: bool) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(20):
        job = start(
            large, low_priority=low_priority, threads=2, **({"if_exists": "replace"} if start is restore_anew else {})
        )
        seen: dict[str, list[int]] = {}
        while not job.join(0) and "df11-ordered" not in seen:
            try:
                seen = nice_of_threads()
            except OSError:
                continue  # A thread has ended meanwhile.
        job.cancel()
        job.join()
        if "df11-ordered" in seen:
            break
    values = [nice for values in seen.values() for nice in values]
    assert values and (min(values) > own if low_priority else set(values) == {own}), seen
