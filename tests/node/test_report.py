"""The report says what a user needs to go on."""

from __future__ import annotations

from typing import Any

from comfy_node.service import report

from . import fake_native
from .fake_native import Job, Plan, Script


def finished(script: Script, tmp_path: Any, **changes: Any) -> dict[str, Any]:
    script.report = {
        "source_bytes": 23_800_000_000,
        "target_bytes": 16_100_000_000,
        "ratio": 16.1 / 23.8,
        "seconds": 41.0,
        **changes,
    }
    return Job(Plan("/models/a.safetensors", str(tmp_path / "a-DF11.safetensors"))).result()


def unit(name: str, code: str = "official", weights: int = 10**6) -> dict[str, Any]:
    return {"name": name, "weights": weights, "bits_per_weight": 11.0, "code": code, "notes": []}


def test_whole_report(script: Script, tmp_path: Any) -> None:
    outcome = finished(script, tmp_path, units=[unit("u.0"), unit("u.1", weights=3 * 10**6)])
    assert report.text(outcome, "sub/a-DF11.safetensors", [], lambda node: node == "SomeLoader").splitlines() == [
        "Done: 23.80 GB -> 16.10 GB (67.6 %) in 0:41, 580 MB/s",
        "Source: /models/a.safetensors",
        f"Written to: {tmp_path}/a-DF11.safetensors",
        "Name in the loader's list: sub/a-DF11.safetensors",
        "Architecture: Alpha 1 (Alpha). Definition: built in",
        "Header: self-describing. Verification: full.",
        "Compression units: 2 (2 official), 4.0 million weights, 11.00 bits each",
        "Load it with: SomeLoader (pack SomePack, installed here)",
    ]


def test_says_where_to_get_a_loader_that_is_missing(script: Script, tmp_path: Any) -> None:
    loader = {**fake_native.LOADER, "note": "Needs the original checkpoint too."}
    lines = report.text(finished(script, tmp_path, loader=loader), "a", [], lambda node: False).splitlines()
    assert lines[-2:] == [
        "Load it with: SomeLoader. It is not installed here: get the pack SomePack from https://example.org/pack",
        "Needs the original checkpoint too.",
    ]


def test_notes_and_unusual_codes(script: Script, tmp_path: Any) -> None:
    units = [*(unit(f"u.{index}", "flattened") for index in range(5)), unit("v", "two-bit")]
    outcome = finished(script, tmp_path, units=units, notes=["unit v: nearly constant"])
    lines = report.text(outcome, "a", ["from the pack"], lambda node: True).splitlines()
    assert "Compression units: 6 (5 flattened, 1 two-bit), 6.0 million weights, 11.00 bits each" in lines
    assert lines[-2:] == ["Note: from the pack", "Note: unit v: nearly constant"]


def test_a_definition_without_a_loader(script: Script, tmp_path: Any) -> None:
    lines = report.text(finished(script, tmp_path, loader=None), "a", [], lambda node: True).splitlines()
    assert lines[-1] == "Load it with: unknown, since the definition names no loader"


def test_a_skip_is_told_apart(script: Script, tmp_path: Any) -> None:
    outcome = finished(script, tmp_path, status="already-done", seconds=0.04, units=[])
    lines = report.text(outcome, "a", [], lambda node: True).splitlines()
    assert lines[0] == "Already done: 23.80 GB -> 16.10 GB (67.6 %), checked in 0.0 s"
    assert not [line for line in lines if line.startswith("Compression units")]
