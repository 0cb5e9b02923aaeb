"""What a file holds, from its header; and what a plan lets expect."""

from __future__ import annotations

import df11_native
import pytest

from support.tensors import Tensor, Tensors, read_header, read_safetensors

from .conftest import Folder
from .test_checks_and_restorations import command, verify
from .test_errors import error_of


def test_a_checkpoint(folder: Folder, tensors: Tensors) -> None:
    folder.write(tensors | {"more": Tensor("F32", tensors["img_in.bias"].array.astype("<f4"))})
    found = df11_native.contents(folder.source)
    assert (found["schema"], found["file"], found["df11"]) == ("df11.contents/1", str(folder.source), None)
    assert (found["bytes"], found["tensors"]) == (folder.source.stat().st_size, len(tensors) + 1)
    size = sum(tensor.array.nbytes for tensor in tensors.values())
    assert found["dtypes"] == [
        {"dtype": "BF16", "tensors": len(tensors), "bytes": size},
        {"dtype": "F32", "tensors": 1, "bytes": 512},
    ]


@pytest.mark.parametrize("header", ["self-describing", "official"])
def test_a_result(folder: Folder, header: str, df11) -> None:
    report = folder.start(header=header).result()
    found = df11_native.contents(str(folder.target))
    inside = found["df11"]
    assert found == command(df11, "inspect", folder.target)
    assert {unit["name"]: unit for unit in inside["units"]} == {
        unit["name"]: {key: unit[key] for key in inside["units"][0]} for unit in report["units"]
    }
    parts = read_safetensors(folder.target)
    assert inside["df11_bytes"] + inside["plain_bytes"] == sum(tensor.array.nbytes for tensor in parts.values())
    assert inside["bits_per_weight"] == inside["df11_bytes"] * 8 / inside["weights"]
    assert inside["weights"] == verify(folder, level="structure").result()["weights"]
    keys = ("source_name", "source_bytes", "architecture", "restored_name", "usable_name")
    told = {key: inside[key] for key in keys}
    if header == "official":
        assert inside["tool"] is None and "official header" in inside["not_exact"]
        assert told == {
            "source_name": None, "source_bytes": None, "architecture": None,
            "restored_name": "model-restored.safetensors", "usable_name": "model-restored.safetensors",
        }  # fmt: skip
    else:
        assert inside["tool"] == read_header(folder.target)["__metadata__"]["df11.tool"]
        assert inside["not_exact"] is None
        assert told == {
            "source_name": "model.safetensors", "source_bytes": folder.source.stat().st_size, "architecture": "Flux",
            "restored_name": "model.safetensors", "usable_name": "model-restored.safetensors",
        }  # fmt: skip


def test_a_result_that_left_much_out(folder: Folder, tensors: Tensors) -> None:
    prefixed = {f"model.diffusion_model.{name}": tensor for name, tensor in tensors.items()}
    folder.write(prefixed | {"vae.weight": Tensor("U8", tensors["img_in.weight"].array.view("u1").repeat(9))})
    folder.start().result()
    assert "were too large to be kept" in df11_native.contents(folder.target)["df11"]["not_exact"]


def test_files_that_are_none(folder: Folder) -> None:
    folder.source.write_bytes(b"<!doctype html>")
    error_of(lambda: df11_native.contents(folder.source), df11_native.RefusedError, "E_NOT_SAFETENSORS")
    error_of(lambda: df11_native.contents(folder.path / "none"), df11_native.Df11Error, "E_READ")


def test_an_estimate(folder: Folder) -> None:
    plan = folder.plan(max_memory=64 << 20, threads=1)
    found = plan.estimate()
    report = plan.report()
    assert (found["schema"], found["threads"], found["memory_budget"]) == ("df11.expectation/1", 1, 64 << 20)
    assert found["bytes_to_write"] == report["predicted_bytes"]
    assert found["bytes_to_read"] == folder.start().result()["bytes_read"]
    assert found["compress_seconds"] > 0 and found["verify_seconds"] > 0
    df11_native.start(plan).join()
    error_of(plan.estimate, df11_native.Df11Error, "E_OPTION")
    error_of(folder.plan(threads=0).estimate, df11_native.Df11Error, "E_OPTION")
