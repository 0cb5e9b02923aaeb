"""DFloat11 Inspect as ComfyUI calls it, in the stub host."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .fake_native import LOADER, RefusedError, Script
from .node_values import values
from .stub_host import PACK, StubHost


@pytest.fixture
def source(host: StubHost) -> Path:
    return host.add("diffusion_models", "sub/a.safetensors")


@pytest.fixture
def node(pack: ModuleType, source: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pack.comfy_node.service.pace, "_rates", [])
    return pack.NODE_CLASS_MAPPINGS["DFloat11Inspect"]()


def look(node: Any, **changes: Any) -> list[str]:
    given = node.run(**values(node, **changes))
    (report,) = given["result"]
    assert given["ui"] == {"text": [report]}
    lines: list[str] = report.splitlines()
    return lines


def test_a_model_that_can_be_compressed(node: Any, source: Path, host: StubHost, script: Script) -> None:
    host.node_classes["SomeLoader"] = object
    script.planned = {"notes": ["something"], "dropped": ["x", "y"]}
    assert look(node) == [
        "Can be compressed: 1 MB -> about 690 kB (31 % smaller)",
        "File: sub/a.safetensors, 1 MB, 5 tensors",
        "Tensors by type: BF16 5 (1 MB)",
        "Architecture: Alpha 1 (Alpha). Definition: built in",
        "Compression units: 1, 0.4 million weights",
        "Copied as it is: 200 kB. Left out: 2 tensors",
        "Size: 1 MB -> about 690 kB (31 % smaller). Published models of these architectures give 68 to 71 % of their "
        "BF16 weights",
        "Time: at least 4.0 s for computing (measured just now with 2 threads), or as long as the disk takes for "
        "reading 1 MB and writing 690 kB",
        "Memory: at most 1.07 GB, whatever the model's size",
        f"Would be written to: {source.with_name('a-DF11.safetensors')}",
        "Free space there: 1000.00 GB",
        "Load it with: SomeLoader (pack SomePack, installed here)",
        "Note: something",
    ]
    assert host.texts[-1][1] == "Can be compressed: 1 MB -> about 690 kB (31 % smaller)"
    assert not script.jobs and sorted(source.parent.iterdir()) == [source], "nothing is written"
    assert script.plans[0]["definitions"] == (str(PACK / "architectures"),)


def test_every_reason_against_it(node: Any, source: Path, host: StubHost, script: Script) -> None:
    script.fail = RefusedError(f"{source}: unit a: F32.\n{source}: unit b: F32.")
    lines = look(node)
    assert lines[0] == host.texts[-1][1] == "Would be refused: 2 reasons"
    assert lines[1:3] == ["File: sub/a.safetensors, 1 MB, 5 tensors", "Tensors by type: BF16 5 (1 MB)"]
    assert lines[3:] == ["sub/a.safetensors: unit a: F32.", "sub/a.safetensors: unit b: F32. [E_REFUSED]"]


def test_a_file_that_is_no_model(node: Any, source: Path, script: Script) -> None:
    script.unreadable = RefusedError(f"{source}: this is GGUF.")
    assert look(node) == [
        "Would be refused: 1 reason", "File: sub/a.safetensors", "sub/a.safetensors: this is GGUF. [E_REFUSED]",
    ]  # fmt: skip


def test_widgets_reach_the_plan(node: Any, script: Script) -> None:
    changes = {"architecture": "Beta", "cast": "to-bf16", "keep_uncompressed": True}
    look(node, **changes)
    assert {key: script.plans[0][key] for key in changes} == changes


def test_a_loader_that_is_missing_and_a_disk_that_is_full(node: Any, source: Path, script: Script) -> None:
    script.planned = {"free_bytes": 5000, "loader": LOADER}
    source.with_name("a-DF11.safetensors").write_bytes(b"there")
    lines = look(node, model="sub/a.safetensors")
    assert lines[0] == "Not enough space: about 690 kB needed, 5 kB free"
    assert any(line.startswith("Load it with: SomeLoader. It is not installed here: get ") for line in lines)
    assert lines[-1].startswith("Note: the file exists; ")


@pytest.mark.parametrize(("same", "rotating"), [(True, True), (True, None), (False, True), (None, None)])
def test_a_disk_for_both_is_named(node: Any, script: Script, same: bool | None, rotating: bool | None) -> None:
    script.planned = {"same_disk": same, "rotating_disk": rotating}
    told = [line for line in look(node) if line.startswith("Disk: ")]
    assert bool(told) == bool(same and rotating)
    assert all("take turns" in line for line in told)


def test_no_folder_that_can_be_written_is_a_reason(node: Any, pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack.comfy_node.service.placement, "_can_write", lambda folder: False)
    lines = look(node)
    assert lines[0] == "Would be refused: 1 reason" and lines[-1].startswith("No folder for the result can be written")


def test_after_a_run_its_rate_is_named(node: Any, pack: Any, script: Script) -> None:
    pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]().run(**values(pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]))
    assert any(line.endswith("The last run here had 500 kB/s: 2.0 s") for line in look(node))


def df11(described: bool) -> dict[str, Any]:
    """What the native part tells of a DF11 file."""
    return {
        "units": [{}, {}], "weights": 3_000_000, "df11_bytes": 4_125_000, "bits_per_weight": 11.0,
        "plain_bytes": 5000, "tool": "x 1" if described else None,
        "source_name": "o.safetensors" if described else None, "source_bytes": 6_000_000 if described else None,
        "architecture": "Alpha" if described else None,
        "not_exact": None if described else "it does not say what it was made from",
        "restored_name": "o.safetensors",
        "usable_name": "m-restored.safetensors",
    }  # fmt: skip


@pytest.mark.parametrize("described", [True, False])
def test_a_df11_file(node: Any, script: Script, described: bool) -> None:
    script.df11 = df11(described)
    lines = look(node)
    assert lines[0] == "Already a DFloat11 file: 1 MB, 11.00 bits per weight"
    assert lines[3:5] == ["Compression units: 2, 3.0 million weights, 11.00 bits each", "Not compressed: 5 kB"]
    if described:
        assert lines[5:] == [
            "Made from: o.safetensors, 6 MB, by x 1",
            "Architecture: Alpha",
            "Exactly restorable: yes, byte for byte with DFloat11 Restore",
        ]
    else:
        assert lines[5:] == [
            "Made from: unknown, since the file does not tell",
            "Exactly restorable: no, it does not say what it was made from",
            "Usable checkpoint: DFloat11 Restore makes one with the same weights, if the architecture is known",
        ]
    assert not script.plans


def test_a_df11_file_whose_source_was_not_kept_whole(node: Any, script: Script) -> None:
    script.df11 = df11(described=True) | {"not_exact": "two tensors were left out"}
    assert look(node)[-2:] == [
        "Exactly restorable: no, two tensors were left out",
        "Usable checkpoint: DFloat11 Restore with 'usable' on makes one with the same weights, "
        "if the architecture is known",
    ]


def test_is_never_cached(node: Any) -> None:
    assert math.isnan(node.IS_CHANGED(**values(node)))
    assert node.VALIDATE_INPUTS(model="sub/a.safetensors") is True
    assert "not in the list" in node.VALIDATE_INPUTS(model="../a.safetensors")
