"""Stop ends the job at once and leaves nothing; errors end it too."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from comfy_node.errors import NodeError
from comfy_node.service import watch as watching
from comfy_node.service.compress import Request, run
from comfy_node.service.watch import Watch

from . import fake_native
from .fake_native import Job, Plan, Script
from .node_values import values
from .stub_host import StubHost


@pytest.fixture(params=[Exception, BaseException])
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubHost:
    """ComfyUI 0.16 raises an Exception when Stop is pressed, 0.30 a BaseException."""
    stub = StubHost(tmp_path / "comfy", request.param)
    stub.install(monkeypatch)
    return stub


def press_stop(host: StubHost, after: float) -> None:
    def press() -> None:
        time.sleep(after)
        host.stopped = True

    threading.Thread(target=press).start()


def test_stop_cancels_within_a_second_and_leaves_nothing(host: StubHost, script: Script) -> None:
    script.seconds = 30
    source = host.add("diffusion_models", "a.safetensors")
    press_stop(host, 0.4)
    started = time.monotonic()
    with pytest.raises(host.Stop):
        run(Request("a.safetensors"), host, Watch("Node", host), lambda node: False)
    assert time.monotonic() - started < 1.4
    assert script.jobs[0].cancelled.is_set()
    assert script.jobs[0].join(0)
    assert sorted(source.parent.iterdir()) == [source]
    assert host.texts[-1][1] == "Stopped."
    assert host.bar[-1][1] < host.bar[-1][2]


def test_stop_that_only_the_bar_notices_cancels_too(
    host: StubHost, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script.seconds = 30
    job = Job(Plan("a", str(tmp_path / "b")))

    def stopped(value: int, total: int) -> None:
        raise host.Stop()

    monkeypatch.setattr(host, "show", stopped)
    with pytest.raises(host.Stop):
        Watch("Node", host).result(job)
    assert job.cancelled.is_set() and job.join(0)


def test_stop_is_noticed_while_the_bar_stands_still(
    host: StubHost, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script.seconds = 3
    job = Job(Plan("a", str(tmp_path / "b")))
    # ComfyUI's bar looks at the button only when it has moved far enough.
    monkeypatch.setattr(host, "show", lambda value, total: None)
    press_stop(host, 0.2)
    with pytest.raises(host.Stop):
        Watch("Node", host).result(job)
    assert job.cancelled.is_set() and job.join(0)


def test_a_job_that_does_not_end_does_not_block_the_queue(
    host: StubHost, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watching, "_CANCEL_SECONDS", 0.2)
    monkeypatch.setattr(fake_native.Job, "cancel", lambda job: None)
    script.seconds = 2
    host.stopped = True
    started = time.monotonic()
    with pytest.raises(host.Stop):
        Watch("Node", host).result(Job(Plan("a", str(tmp_path / "b"))))
    assert time.monotonic() - started < 1


def test_progress_is_monotonic_and_ends_full(host: StubHost, script: Script) -> None:
    script.seconds = 1.5
    host.add("diffusion_models", "a.safetensors")
    run(Request("a.safetensors"), host, Watch("Node", host), lambda node: False)
    values = [value for _, value, _ in host.bar]
    assert values == sorted(values)
    assert host.bar[-1][1:] == (script.source_bytes, script.source_bytes)
    assert any(0 < value < script.source_bytes for value in values)
    for events in (host.bar, host.texts):
        times = [event[0] for event in events]
        assert all(sum(start <= t < start + 1 for t in times) <= 10 for start in times)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("Compress", "plan"),
        ("CompressFolder", "plan"),
        ("Inspect", "contents"),
        ("Inspect", "plan"),
        ("Verify", "verify"),
        ("Restore", "contents"),
        ("Restore", "restore"),
    ],
)
def test_stop_is_followed_while_a_disk_does_not_answer(
    pack: ModuleType, host: StubHost, script: Script, kind: str, call: str
) -> None:
    """And what the call gives in the end is of no effect."""
    script.seconds = 30
    script.df11 = {"restored_name": "b.safetensors"} if kind == "Restore" else None
    answer = threading.Event()
    script.stall = (call, answer)
    source = host.add("diffusion_models", "a.safetensors")
    node = pack.NODE_CLASS_MAPPINGS[f"DFloat11{kind}"]()
    before = threading.active_count()
    press_stop(host, 0.2)
    started = time.monotonic()
    try:
        with pytest.raises(host.Stop):
            node.run(**values(node))
        assert time.monotonic() - started < 0.8
        assert host.texts[-1][1] == "Stopped."
    finally:
        answer.set()
    deadline = time.monotonic() + 10
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert all(job.cancelled.is_set() for job in script.jobs)
    assert len(script.jobs) == (call in ("verify", "restore"))
    assert sorted(source.parent.iterdir()) == [source]


def test_what_a_call_raises_comes_as_it_is(host: StubHost) -> None:
    error = NodeError("no.", "E_X")

    def refuse(a: int, b: int) -> int:
        if a == b:
            raise error
        return a - b

    watch = Watch("Node", host)
    assert watch.ask(refuse, 3, b=1) == 2
    with pytest.raises(NodeError) as caught:
        watch.ask(refuse, 1, b=1)
    assert caught.value is error


def test_what_a_call_raises_after_stop_is_not_heard(host: StubHost, caplog: pytest.LogCaptureFixture) -> None:
    answer = threading.Event()
    ended = threading.Event()

    def refuse() -> None:
        answer.wait(5)
        try:
            raise NodeError("no.")
        finally:
            ended.set()

    host.stopped = True
    with pytest.raises(host.Stop):
        Watch("Node", host).ask(refuse)
    answer.set()
    assert ended.wait(10)
    time.sleep(0.1)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
