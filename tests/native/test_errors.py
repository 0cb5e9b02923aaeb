"""Exceptions: the class, the code, the place, what to do."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from collections.abc import Callable

import df11_native
import numpy as np
import pytest

from support.tensors import Tensor, Tensors, write_safetensors

from .conftest import NAME, Folder

QKV = "double_blocks.0.img_attn.qkv.weight"
# A tensor whose data is a hole in the file.
HOLE = "hole"


def error_of(call: Callable[[], object], kind: type[df11_native.Df11Error], code: str) -> df11_native.Df11Error:
    """The exception of a call, with all that every exception has."""
    with pytest.raises(df11_native.Df11Error) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert error.code == code
    text = str(error)
    assert error.args == (text,)
    for part in (error.path, error.unit, error.tensor, error.hint):
        assert part is None or part in text
    return error


def place(error: df11_native.Df11Error) -> tuple[str | None, str | None, str | None, int | None]:
    return error.path, error.unit, error.tensor, error.index


def with_hole(folder: Folder, tensors: Tensors, size: int) -> None:
    """Lets the source claim one more tensor of `size` bytes, which take no room on the disk."""
    write_safetensors(folder.source, tensors | {HOLE: Tensor("U8", np.zeros(0, "u1"))})
    raw = folder.source.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = raw[8 : 8 + length].rstrip(), raw[8 + length :]
    begin = len(data)
    old = f'"shape":[0],"data_offsets":[{begin},{begin}]'.encode()
    new = f'"shape":[{size}],"data_offsets":[{begin},{begin + size}]'.encode()
    assert header.count(old) == 1
    header = header.replace(old, new)
    folder.source.write_bytes(struct.pack("<Q", len(header)) + header + data)
    with folder.source.open("r+b") as file:
        file.truncate(8 + len(header) + begin + size)


def test_classes() -> None:
    kinds = ("RefusedError", "VerificationError", "SpaceError", "TargetExistsError", "CancelledError")
    for kind in kinds:
        assert getattr(df11_native, kind).__bases__ == (df11_native.Df11Error,)
    assert df11_native.Df11Error.__bases__ == (Exception,)


def test_an_exponent_without_room(folder: Folder, tensors: Tensors) -> None:
    values = tensors[QKV].array.copy()
    values.reshape(-1)[1234] = 0x7F80
    folder.write(tensors | {QKV: Tensor("BF16", values)})
    job = folder.start()
    for _ in range(2):
        error = error_of(job.result, df11_native.RefusedError, "E_EXPONENT")
        assert place(error) == (str(folder.source), "double_blocks.0", QKV, 1234)
        assert "1234" in str(error) and error.hint
    assert folder.is_clean()


def test_every_fault_of_a_header_has_a_line(folder: Folder, tensors: Tensors) -> None:
    modulation = "single_blocks.0.linear2.weight"
    f32 = Tensor("F32", tensors[QKV].array.astype("<f4"))
    folder.write({name: tensor for name, tensor in tensors.items() if name != modulation} | {QKV: f32})
    for call in (folder.plan, lambda: df11_native.inspect(folder.source)):
        error = error_of(call, df11_native.RefusedError, "E_DTYPE")
        assert place(error) == (str(folder.source), "double_blocks.0", QKV, None)
        first, second = str(error).splitlines()
        assert QKV in first and error.hint in first
        assert str(folder.source) in second and modulation in second
    assert folder.is_clean()


def test_a_file_that_is_no_model(folder: Folder) -> None:
    folder.source.write_bytes(b"GGUF\x03\0\0\0")
    error = error_of(folder.plan, df11_native.RefusedError, "E_NOT_SAFETENSORS")
    assert place(error) == (str(folder.source), None, None, None)
    assert error.hint


def test_a_missing_file(folder: Folder) -> None:
    folder.source.unlink()
    for call in (folder.plan, lambda: df11_native.inspect(folder.source)):
        error = error_of(call, df11_native.Df11Error, "E_READ")
        assert place(error) == (str(folder.source), None, None, None)


@pytest.mark.parametrize("option", ["header", "verify", "if_exists", "cast", "architecture"])
@pytest.mark.parametrize("value", ["", "nonsense", "AUTO", " full", "Official"])
def test_wrong_words(folder: Folder, option: str, value: str) -> None:
    error = error_of(lambda: folder.plan(**{option: value}), df11_native.Df11Error, "E_OPTION")
    assert (error.unit, error.tensor, error.index) == (None, None, None)
    assert value in str(error)
    known = {"header": "official", "verify": "full", "if_exists": "number", "cast": "to-bf16", "architecture": "Flux2"}
    assert known[option] in str(error), "what is allowed is said"
    if option == "architecture":
        inspected = error_of(
            lambda: df11_native.inspect(folder.source, architecture=value), df11_native.Df11Error, "E_OPTION"
        )
        assert str(inspected) == str(error)
    assert folder.is_clean()


@pytest.mark.parametrize("options", [{"max_memory": 0}, {"max_memory": (64 << 20) - 1}, {"threads": 0}], ids=str)
def test_wrong_numbers(folder: Folder, options: dict[str, int]) -> None:
    error = error_of(folder.start(**options).result, df11_native.Df11Error, "E_OPTION")
    assert error.hint
    assert folder.is_clean()
    for option in (*options, "max_rate"):
        with pytest.raises(OverflowError):
            folder.plan(**{option: -1})
        with pytest.raises(TypeError):
            folder.plan(**{option: "1"})


def test_a_contradicted_choice_is_a_refusal(folder: Folder) -> None:
    error = error_of(lambda: folder.plan(architecture="Anima"), df11_native.RefusedError, "E_ARCH_CONTRADICTION")
    assert place(error) == (str(folder.source), None, None, None)
    assert error.hint


def test_targets_in_the_way(folder: Folder) -> None:
    kind = df11_native.TargetExistsError
    busy = folder.start_writing()
    error = error_of(folder.start().result, kind, "E_TARGET_BUSY")
    assert place(error)[0] == str(folder.target)
    busy.cancel()
    busy.join()

    folder.target.write_bytes(b"somebody's file")
    for call in (folder.start().result, lambda: folder.plan(if_exists="error")):
        error = error_of(call, kind, "E_TARGET_EXISTS")
        assert place(error) == (str(folder.target), None, None, None)
        assert error.hint
    assert folder.target.read_bytes() == b"somebody's file"
    folder.target.unlink()

    folder.partial.write_bytes(b"somebody's file")
    error = error_of(folder.start().result, kind, "E_PARTIAL_FOREIGN")
    assert place(error)[0] == str(folder.partial)
    assert folder.partial.read_bytes() == b"somebody's file"

    itself = error_of(
        lambda: df11_native.plan(folder.source, folder.source), df11_native.Df11Error, "E_TARGET_IS_SOURCE"
    )
    assert itself.path == str(folder.source)


def test_a_disk_that_is_too_small(folder: Folder, tensors: Tensors) -> None:
    with_hole(folder, tensors, shutil.disk_usage(folder.path).free + (1 << 30))
    error = error_of(folder.start().result, df11_native.SpaceError, "E_NO_SPACE")
    assert place(error) == (str(folder.target), None, None, None)
    assert error.hint
    assert folder.is_clean()


def test_a_large_budget_is_no_fault(folder: Folder) -> None:
    """Buffers are never larger than the model."""
    folder.start(max_memory=(1 << 64) - 1).result()


# In a process of its own, which an allocation that fails may abort.
LIMITED = """
import resource, sys, df11_native
plan = df11_native.plan(sys.argv[1], max_memory=1 << 40)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
try:
    df11_native.start(plan).result()
except df11_native.SpaceError as error:
    print(error.code, bool(error.hint))
"""


def test_memory_that_the_system_does_not_give(folder: Folder, tensors: Tensors) -> None:
    with_hole(folder, tensors, 2 << 30)
    command = [sys.executable, "-c", LIMITED, folder.source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "E_NO_MEMORY True\n"), done.stderr
    assert folder.is_clean()


def test_a_faulty_architecture_file(folder: Folder) -> None:
    (folder.path / "toy.toml").write_text("schema = 2")
    options = {"definitions": [folder.path]}
    calls = (
        lambda: folder.plan(**options),
        lambda: df11_native.inspect(folder.source, **options),
        lambda: df11_native.architectures(**options),
    )
    for call in calls:
        error = error_of(call, df11_native.Df11Error, "E_DEFINITION")
        assert str(folder.path / "toy.toml") in str(error)
    assert folder.files() == [NAME, "toy.toml"]
