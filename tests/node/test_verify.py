"""DFloat11 Verify as ComfyUI calls it, in the stub host."""

from __future__ import annotations

import math
import threading
import time
from types import ModuleType
from typing import Any

import pytest

from .fake_native import Script, VerificationError
from .node_values import values
from .stub_host import PACK, StubHost


@pytest.fixture
def node(pack: ModuleType, host: StubHost) -> Any:
    for name in ("a.safetensors", "sub/a-DF11.safetensors"):
        host.add("diffusion_models", name)
    host.add("checkpoints", "b.safetensors")
    return pack.NODE_CLASS_MAPPINGS["DFloat11Verify"]()


def test_lists_df11_files_first(node: Any) -> None:
    inputs = node.INPUT_TYPES()["required"]
    assert inputs["df11_model"][0] == ["sub/a-DF11.safetensors", "a.safetensors", "checkpoints/b.safetensors"]
    assert inputs["source"][0] == ["none", "a.safetensors", "sub/a-DF11.safetensors", "checkpoints/b.safetensors"]
    assert inputs["level"][0][0] == "full"


def test_checks_the_first_file_without_a_source(node: Any, host: StubHost, script: Script) -> None:
    given = node.run(**values(node))
    (report,) = given["result"]
    assert given["ui"] == {"text": [report]}
    assert report.splitlines() == [
        "Sound at level full: 1 MB in 2.0 s",
        "File: sub/a-DF11.safetensors",
        "Compared with: no source",
        "Compression units: 4, 4.0 million weights, 300 of 300 kernel chunks decoded",
        "Checked: sizes",
        "Checked: every code",
    ]
    (check,) = script.checks
    assert check["path"] == host.path("diffusion_models", "sub/a-DF11.safetensors")
    assert (check["level"], check["against"], check["samples"], check["threads"]) == ("full", None, 200, None)
    assert check["low_priority"] is True and check["definitions"] == (str(PACK / "architectures"),)
    assert host.texts[-1][1:] == ("Sound at level full: 1 MB in 2.0 s", "7", "browser")
    assert host.bar[-1][1:] == (script.source_bytes, script.source_bytes)


def test_passes_every_widget_on(node: Any, host: StubHost, script: Script) -> None:
    script.report = {"unseen": ["a change"]}
    changes = {"source": "checkpoints/b.safetensors", "level": "sample", "samples": 5, "sample_seed": 9, "threads": 2}
    (report,) = node.run(**values(node, **changes))["result"]
    (check,) = script.checks
    assert check["against"] == host.path("checkpoints", "b.safetensors")
    assert (check["level"], check["samples"], check["seed"], check["threads"]) == ("sample", 5, 9, 2)
    assert "Compared with: b.safetensors" in report and "Not seen at this level: a change" in report
    assert report.endswith("The same choice again: sample_seed 9")


def test_a_new_choice_can_be_typed_into_the_widget(node: Any, script: Script) -> None:
    for _ in range(5):
        node.run(**values(node, level="sample"))
    seeds = [check["seed"] for check in script.checks]
    most = node.INPUT_TYPES()["optional"]["sample_seed"][1]["max"]
    assert len(set(seeds)) > 1 and all(0 < seed <= most for seed in seeds)


@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_is_not_sound_stops_the_run(
    node: Any, host: StubHost, script: Script, pack: Any, late: bool
) -> None:
    path = host.path("diffusion_models", "sub/a-DF11.safetensors")
    error = VerificationError(f"{path}: unit u: index 5: the weight is another.")
    script.fail, script.fail_late = (None, error) if late else (error, None)
    with pytest.raises(pack.comfy_node.errors.NodeError) as caught:
        node.run(**values(node))
    sentence = "sub/a-DF11.safetensors: unit u: index 5: the weight is another. [E_VERIFY]"
    assert (str(caught.value), caught.value.code) == (sentence, "E_VERIFY")
    assert host.texts[-1][1] == sentence


def test_bad_choices_are_one_sentence(node: Any) -> None:
    assert node.VALIDATE_INPUTS(df11_model="sub/a-DF11.safetensors", source="none") is True
    assert node.VALIDATE_INPUTS(df11_model=None, source=None) is True
    assert "'../x' is not in the list" in node.VALIDATE_INPUTS(df11_model="../x", source="none")
    assert "'../x' is not in the list" in node.VALIDATE_INPUTS(df11_model="a.safetensors", source="../x")


def test_runs_again_only_when_a_file_changed(node: Any, host: StubHost) -> None:
    chosen = values(node, source="a.safetensors")
    before = node.IS_CHANGED(**chosen)
    node.run(**chosen)
    assert node.IS_CHANGED(**chosen) == before
    host.add("diffusion_models", "a.safetensors").write_bytes(b"another")
    assert node.IS_CHANGED(**chosen) != before
    for changes in ({"df11_model": "gone"}, {"level": None}):
        assert math.isnan(node.IS_CHANGED(**{**chosen, **changes}))


def test_stop_ends_the_check(node: Any, host: StubHost, script: Script) -> None:
    script.seconds = 30

    def press() -> None:
        time.sleep(0.3)
        host.stopped = True

    threading.Thread(target=press).start()
    with pytest.raises(host.Stop):
        node.run(**values(node))
    assert script.jobs[0].cancelled.is_set() and script.jobs[0].join(0)
    assert host.texts[-1][1] == "Stopped."
