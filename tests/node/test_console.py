"""What the server's console shows of a run."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from comfy_node.errors import NodeError
from comfy_node.service.compress import Request, run
from comfy_node.service.watch import Watch

from .fake_native import Job, Plan, RefusedError, Script
from .node_values import values
from .stub_host import StubHost


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_short_run_has_a_line_at_its_start_and_one_at_its_end(
    host: StubHost, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script.seconds = 0.5
    host.add("diffusion_models", "a.safetensors")
    with caplog.at_level(logging.INFO):
        run(Request("a.safetensors"), host, Watch("A Node", host), lambda node: False)
    start, end = lines(caplog)
    assert start == "A Node: a.safetensors, 1 MB ..."
    assert end.startswith("A Node: Done: ")


def test_a_long_run_has_one_every_ten_seconds(
    host: StubHost, script: Script, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    script.seconds = 2
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    watch = Watch("A Node", host, clock)
    with caplog.at_level(logging.INFO):
        watch.begin("start")
        watch.result(Job(Plan("a", str(tmp_path / "b"))))
    between = lines(caplog)[1:]
    # The clock goes on by one second at each question: one a frame, and one a line.
    assert len(between) == pytest.approx(len(host.bar) / 11, abs=1.5) and between
    assert all(" %" in line for line in between)


def test_stop_is_said(host: StubHost, script: Script, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    script.seconds = 5
    host.stopped = True
    with caplog.at_level(logging.INFO), pytest.raises(host.Stop):
        Watch("A Node", host).result(Job(Plan("a", str(tmp_path / "b"))))
    assert lines(caplog) == ["A Node: Stopped."]


def test_what_was_foreseen_has_no_traceback(
    pack: Any, host: StubHost, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """ComfyUI logs an exception's sentence and its traceback, each by itself."""
    host.add("diffusion_models", "a.safetensors")
    node = pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]()

    def logged(call: Any) -> list[str]:
        caplog.clear()
        try:
            call()
        except Exception as error:
            logging.error(f"!!! Exception during processing !!! {error}")
            logging.error(traceback.format_exc())
        return lines(caplog)

    script.fail = RefusedError("the file is FP8.")
    assert logged(lambda: node.run(**values(node))) == [
        "!!! Exception during processing !!! the file is FP8. [E_REFUSED]"
    ]
    script.fail = ValueError("a bug")
    assert "Traceback" in logged(lambda: node.run(**values(node)))[1]

    def others() -> None:
        raise NodeError("of another pack's copy of this class")

    assert "Traceback" in logged(others)[1], "only this pack's own"
    assert logged(lambda: logging.error("Traceback is a word")) == ["Traceback is a word"]
