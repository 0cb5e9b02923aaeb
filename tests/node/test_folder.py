"""DFloat11 Compress Folder as ComfyUI calls it, in the stub host."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from comfy_node.errors import NodeError
from comfy_node.service import sources

from .fake_native import RefusedError, Script, SpaceError
from .node_values import values
from .stub_host import StubHost

NAMES = ("a.safetensors", "b.safetensors", "sub/c.safetensors")


@pytest.fixture
def models(host: StubHost) -> list[Path]:
    return [host.add("diffusion_models", name) for name in NAMES]


@pytest.fixture
def node(pack: ModuleType, models: list[Path]) -> Any:
    return pack.NODE_CLASS_MAPPINGS["DFloat11CompressFolder"]()


def compress(node: Any, **changes: Any) -> list[str]:
    (report,) = node.run(**values(node, **changes))["result"]
    lines: list[str] = report.splitlines()
    return lines


def table(lines: list[str]) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [[row[0], row[-1]] for row in rows[1:]]


def made(models: list[Path]) -> list[str]:
    folder = models[0].parent
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*-DF11.safetensors"))


def refused(code: str) -> RefusedError:
    error = RefusedError("no.")
    error.code = code
    return error


def test_compresses_all_one_after_the_other(node: Any, host: StubHost, models: list[Path], script: Script) -> None:
    lines = compress(node)
    assert made(models) == ["a-DF11.safetensors", "b-DF11.safetensors", "sub/c-DF11.safetensors"]
    assert lines[0] == host.texts[-1][1] == "3 compressed (3 MB -> 2 MB, 6.0 s)"
    assert lines[2:5] == [
        "| model | before | after | size | time | result |",
        "|---|---|---|---|---|---|",
        "| a.safetensors | 1 MB | 667 kB | 66.7 % | 2.0 s | compressed |",
    ]
    assert lines[-1].startswith("Load it with: SomeLoader")
    assert sum(line.startswith("Load it") for line in lines) == 1
    # One after the other: a job has ended before the next is planned to run.
    assert all(job.join(0) for job in script.jobs)
    assert script.plans[0]["low_priority"] is True


def test_one_bar_over_all_bytes(node: Any, host: StubHost, script: Script) -> None:
    script.seconds = 0.5
    compress(node)
    values_ = [value for _, value, _ in host.bar]
    assert values_ == sorted(values_)
    assert {total for _, _, total in host.bar} == {3 * script.source_bytes}
    assert values_[-1] == 3 * script.source_bytes
    assert any(0 < value < script.source_bytes for value in values_)
    texts = [text for _, text, _, _ in host.texts]
    assert any(", file 2/3, unit " in text for text in texts)
    times = [event[0] for event in host.bar]
    assert all(sum(start <= t < start + 1 for t in times) <= 12 for start in times)


def test_folders_and_patterns(host: StubHost, models: list[Path]) -> None:
    host.add("checkpoints", "x/y/d.safetensors")
    assert sources.folder_choices(host) == [
        "diffusion_models", "checkpoints", "diffusion_models/sub", "checkpoints/x", "checkpoints/x/y",
    ]  # fmt: skip
    for folder, pattern, found in (
        ("diffusion_models", "", list(NAMES)),
        ("diffusion_models", "*", list(NAMES)),
        ("diffusion_models", " A.* ", ["a.safetensors"]),
        ("diffusion_models", "c*", ["sub/c.safetensors"]),
        ("diffusion_models", "sub/*", ["sub/c.safetensors"]),
        ("diffusion_models", "sub\\?.safetensors", ["sub/c.safetensors"]),
        ("diffusion_models/sub", "*", ["sub/c.safetensors"]),
        ("diffusion_models\\sub", "a*", []),
        ("checkpoints", "*", ["checkpoints/x/y/d.safetensors"]),
    ):
        assert sources.inside(host, folder, pattern) == found, (folder, pattern)
    for folder in ("", "..", "diffusion_models/..", "loras", "/"):
        with pytest.raises(NodeError, match="is not in the list"):
            sources.inside(host, folder, "*")


def test_bad_folders_are_one_sentence(node: Any) -> None:
    assert node.VALIDATE_INPUTS(folder="diffusion_models") is True
    assert node.VALIDATE_INPUTS(folder=None) is True
    assert "'../x' is not in the list" in node.VALIDATE_INPUTS(folder="../x")


def test_skips_what_is_done_and_the_limit_does_not_count_it(node: Any, models: list[Path], script: Script) -> None:
    lines = compress(node, limit=1)
    assert made(models) == ["a-DF11.safetensors"]
    assert lines[0] == "1 compressed (1 MB -> 667 kB, 2.0 s), 2 left"
    assert "Left for another run by the limit: 2" in lines
    # The stand-in's own result counts as a DF11 file in the second run, as a real one does.
    for name in ("a-DF11.safetensors", "b-DF11.safetensors"):
        script.refused[name] = refused("E_ALREADY_DF11")
    compress(node, limit=1)
    assert made(models) == ["a-DF11.safetensors", "b-DF11.safetensors"]
    script.report = {"status": "already-done"}
    lines = compress(node, limit=1, pattern="[ab]*")
    assert table(lines) == [["a.safetensors", "done before"], ["b.safetensors", "done before"]]
    assert lines[0] == "0 compressed, 2 done before" and "Left out: 2 DFloat11 files" in lines


def test_what_cannot_be_compressed_is_named_and_no_failure(node: Any, script: Script, models: list[Path]) -> None:
    script.refused["b.safetensors"] = refused("E_QUANTIZED")
    lines = compress(node, continue_on_error=False)
    assert table(lines) == [["a.safetensors", "compressed"], ["sub/c.safetensors", "compressed"]]
    assert "Refused: b.safetensors: no. [E_QUANTIZED]" in lines
    assert lines[0].endswith(", 1 refused")


def fail_on(script: Script, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Lets the job of one file fail."""
    from . import fake_native

    original = fake_native.Job.result

    def result(job: Any) -> dict[str, Any]:
        outcome = original(job)
        if job.plan.source.endswith(name):
            raise SpaceError("the disk is full.")
        return outcome

    monkeypatch.setattr(fake_native.Job, "result", result)


def test_goes_on_after_a_failure(
    node: Any, script: Script, models: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_on(script, monkeypatch, "b.safetensors")
    lines = compress(node)
    assert table(lines) == [
        ["a.safetensors", "compressed"], ["b.safetensors", "failed"], ["sub/c.safetensors", "compressed"],
    ]  # fmt: skip
    assert "Failed: b.safetensors: the disk is full. [E_SPACE]" in lines
    assert lines[0].endswith(", 1 failed")


def test_stops_at_a_failure_when_told_to(
    node: Any, script: Script, models: list[Path], monkeypatch: pytest.MonkeyPatch, pack: Any
) -> None:
    fail_on(script, monkeypatch, "b.safetensors")
    with pytest.raises(pack.comfy_node.errors.NodeError) as caught:
        compress(node, continue_on_error=False)
    assert str(caught.value) == "the disk is full. [E_SPACE] Finished before it, and kept: 1."
    assert caught.value.code == "E_SPACE"
    assert len(script.jobs) == 2


def test_stop_keeps_finished_files(node: Any, host: StubHost, script: Script, models: list[Path]) -> None:
    script.seconds = 0.6

    def press() -> None:
        time.sleep(0.9)
        host.stopped = True

    threading.Thread(target=press).start()
    with pytest.raises(host.Stop):
        compress(node)
    assert made(models) == ["a-DF11.safetensors"]
    assert not list(models[0].parent.rglob("*.partial"))
    assert host.texts[-1][1] == "Stopped."


def test_an_empty_folder_says_so(node: Any) -> None:
    assert compress(node, pattern="nothing*") == ["0 compressed", "No model fits the folder and the pattern."]


def test_passes_every_widget_on(node: Any, script: Script) -> None:
    changes = {"header": "official", "verify": "off", "cast": "to-bf16", "keep_uncompressed": True}
    compress(node, **changes, max_rate=3, max_memory=256, threads=2, limit=1)
    plan = script.plans[-1]
    assert {key: plan[key] for key in changes} == changes
    assert (plan["max_rate"], plan["max_memory"], plan["threads"]) == (3_000_000, 256 << 20, 2)
    assert (plan["architecture"], plan["if_exists"]) == ("auto", "skip")
