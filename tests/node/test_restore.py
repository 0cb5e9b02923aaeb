"""DFloat11 Restore as ComfyUI calls it, in the stub host."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .fake_native import Script, TargetExistsError
from .node_values import values
from .stub_host import StubHost

MODEL = "sub/a-DF11.safetensors"


@pytest.fixture
def df11(host: StubHost, script: Script) -> Path:
    script.df11 = {"restored_name": "a.safetensors", "usable_name": "a-restored.safetensors"}
    return host.add("diffusion_models", MODEL)


@pytest.fixture
def node(pack: ModuleType, df11: Path) -> Any:
    return pack.NODE_CLASS_MAPPINGS["DFloat11Restore"]()


def test_restores_beside_the_file_under_its_old_name(node: Any, df11: Path, host: StubHost, script: Script) -> None:
    given = node.run(**values(node))
    name, report = given["result"]
    assert name == os.path.join("sub", "a.safetensors")
    assert name in host.names("diffusion_models")
    assert given["ui"] == {"text": [report]}
    assert report.splitlines() == [
        "Done: 667 kB -> 1 MB in 2.0 s",
        "Restored: the file that was compressed, byte for byte",
        f"From: {MODEL}",
        f"Written to: {df11.with_name('a.safetensors')}",
        f"Name in the loader's list: {name}",
        "Tensors: 12. Compression units: 4",
    ]
    (restoration,) = script.restorations
    assert restoration == {
        "path": str(df11), "target": str(df11.with_name("a.safetensors")), "usable": False, "architecture": "auto",
        "if_exists": "skip", "threads": None, "definitions": restoration["definitions"], "low_priority": True,
    }  # fmt: skip


def test_says_when_it_is_not_the_original(node: Any, script: Script) -> None:
    script.report = {"exact": False, "notes": ["the metadata is new"]}
    report = node.run(**values(node))["result"][1].splitlines()
    assert report[1] == "Restored: a checkpoint with the same weights, not the file that was compressed"
    assert report[-1] == "Note: the metadata is new"


def test_a_second_run_says_so(node: Any, script: Script, host: StubHost) -> None:
    script.report = {"status": "already-done"}
    node.run(**values(node))
    assert host.texts[-1][1] == "Already done: 667 kB -> 1 MB, checked in 2.0 s"


def test_passes_every_widget_on(node: Any, df11: Path, script: Script) -> None:
    script.target = "/elsewhere/mine-2.safetensors"
    name, _ = node.run(**values(node, output_name="mine", if_exists="number", threads=2))["result"]
    assert name == os.path.join("sub", "mine-2.safetensors"), "the list's name, whatever the report's spelling"
    (restoration,) = script.restorations
    assert restoration["target"] == str(df11.with_name("mine.safetensors"))
    assert (restoration["if_exists"], restoration["threads"]) == ("number", 2)


def test_a_usable_checkpoint_gets_another_name(node: Any, df11: Path, script: Script) -> None:
    node.run(**values(node, usable=True, architecture="Flux"))
    (restoration,) = script.restorations
    assert restoration["target"] == str(df11.with_name("a-restored.safetensors"))
    assert (restoration["usable"], restoration["architecture"]) == (True, "Flux")


def test_refusals_are_one_sentence(node: Any, df11: Path, script: Script, host: StubHost, pack: Any) -> None:
    assert node.VALIDATE_INPUTS(df11_model=MODEL, output_name="") is True
    assert "'../x' is not in the list" in node.VALIDATE_INPUTS(df11_model="../x", output_name="")
    assert "'../x' has a character" in node.VALIDATE_INPUTS(df11_model=MODEL, output_name="../x")
    script.fail_late = TargetExistsError(f"{df11}: busy.")
    with pytest.raises(pack.comfy_node.errors.NodeError, match=rf"^{MODEL}: busy\. \[E_TARGET_EXISTS\]$"):
        node.run(**values(node))
    assert host.texts[-1][1] == f"{MODEL}: busy. [E_TARGET_EXISTS]"


def test_what_is_no_df11_file_reaches_the_native_part_which_says_so(node: Any, script: Script) -> None:
    script.df11 = None
    node.run(**values(node))
    assert script.restorations[0]["target"].endswith("restored.safetensors")


def test_runs_again_when_the_file_has_gone(node: Any, df11: Path) -> None:
    before = node.IS_CHANGED(**values(node))
    node.run(**values(node))
    assert node.IS_CHANGED(**values(node)) == before
    df11.with_name("a.safetensors").unlink()
    assert node.IS_CHANGED(**values(node)) != before
    assert math.isnan(node.IS_CHANGED(**values(node, output_name=None)))
