"""The node as ComfyUI calls it, in the stub host."""

from __future__ import annotations

import math
import os
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from . import node_values
from .fake_native import Df11Error, RefusedError, Script
from .stub_host import PACK, StubHost

MODEL = "sub/a.safetensors"


@pytest.fixture
def source(host: StubHost) -> Path:
    return host.add("diffusion_models", MODEL)


@pytest.fixture
def node(pack: ModuleType, source: Path) -> Any:
    return pack.NODE_CLASS_MAPPINGS["DFloat11Compress"]()


def values(node: Any, **changes: Any) -> dict[str, Any]:
    return node_values.values(node, **{"model": MODEL, **changes})


def test_compresses(node: Any, source: Path, host: StubHost, script: Script) -> None:
    host.node_classes["SomeLoader"] = object
    given = node.run(**values(node))
    name, report = given["result"]
    assert name == os.path.join("sub", "a-DF11.safetensors")
    assert name in host.names("diffusion_models")
    assert "(pack SomePack, installed here)" in report and given["ui"] == {"text": [report]}
    assert {(node_id, browser) for _, _, node_id, browser in host.texts} == {("7", "browser")}
    assert host.texts[-1][1].startswith("Done: ")
    plan = script.plans[0]
    assert (plan["source"], plan["target"]) == (str(source), str(source.with_name("a-DF11.safetensors")))
    assert plan["definitions"] == (str(PACK / "architectures"),)
    assert plan["low_priority"] is True
    assert (plan["max_memory"], plan["max_rate"], plan["threads"]) == (None, None, None)
    chosen = {key: plan[key] for key in ("architecture", "header", "verify", "if_exists", "cast")}
    assert chosen == {
        "architecture": "auto", "header": "self-describing", "verify": "full", "if_exists": "skip", "cast": "none",
    }  # fmt: skip


def test_passes_every_widget_on(node: Any, host: StubHost, script: Script) -> None:
    users = host.user_folder / "dfloat11" / "architectures"
    users.mkdir(parents=True)
    changes = {
        "architecture": "Beta", "header": "official", "verify": "off", "if_exists": "replace", "cast": "to-bf16",
        "keep_uncompressed": True,
    }  # fmt: skip
    node.run(**values(node, **changes, output_name="mine", max_rate=3, max_memory=256, threads=2))
    plan = script.plans[0]
    assert {key: plan[key] for key in changes} == changes
    assert plan["target"].endswith("mine.safetensors")
    assert (plan["max_rate"], plan["max_memory"], plan["threads"]) == (3_000_000, 256 * 1024 * 1024, 2)
    assert plan["definitions"] == (str(PACK / "architectures"), str(users)), "later ones win"


def test_names_the_numbered_file(node: Any, source: Path, script: Script) -> None:
    # The native part may give the path in another spelling; the name must still be the list's.
    script.target = "/elsewhere/a-DF11-2.safetensors"
    assert node.run(**values(node, if_exists="number"))["result"][0] == os.path.join("sub", "a-DF11-2.safetensors")


def test_says_where_the_file_went_instead(node: Any, source: Path, monkeypatch: pytest.MonkeyPatch, pack: Any) -> None:
    place = pack.comfy_node.service.placement
    monkeypatch.setattr(place, "_can_write", lambda folder: "output" in folder and not os.makedirs(folder))
    name, report = node.run(**values(node))["result"]
    assert name == "a-DF11.safetensors"
    assert f"Note: {source.parent} cannot be written, so the file is in " in report


@pytest.mark.parametrize("late", [False, True])
def test_a_native_error_is_one_sentence(
    node: Any, source: Path, host: StubHost, script: Script, pack: Any, late: bool
) -> None:
    error: Df11Error = RefusedError(f"{source}: the file is FP8. Get the BF16 file.")
    error.code = "E_FP8"
    script.fail, script.fail_late = (None, error) if late else (error, None)
    with pytest.raises(pack.comfy_node.errors.NodeError) as caught:
        node.run(**values(node))
    sentence = f"{os.path.join('sub', 'a.safetensors')}: the file is FP8. Get the BF16 file. [E_FP8]"
    assert str(caught.value) == sentence
    assert host.texts[-1][1] == sentence, "seen under the node, whatever the front end does with exceptions"
    shown = "".join(traceback.format_exception(caught.value))
    assert "direct cause" not in shown and "another exception" not in shown
    assert [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)] == [
        Path(__file__).name,
        "base.py",
    ]


def test_a_panic_does_not_end_the_servers_worker_thread(node: Any, script: Script, pack: Any) -> None:
    script.fail = type("PanicException", (BaseException,), {})("index out of bounds")
    with pytest.raises(pack.comfy_node.errors.NodeError, match="which is a bug: index out of bounds"):
        node.run(**values(node))


def test_names_from_links_are_checked_when_they_arrive(node: Any, script: Script, pack: Any) -> None:
    for changes in ({"output_name": "../x"}, {"model": "../a.safetensors"}):
        with pytest.raises(pack.comfy_node.errors.NodeError):
            node.run(**values(node, **changes))
    assert not script.plans


def test_fingerprint_holds_until_a_file_changes(node: Any, source: Path) -> None:
    def fingerprint(**changes: Any) -> Any:
        return node.IS_CHANGED(**values(node, **changes))

    target = source.with_name("a-DF11.safetensors")
    seen = []
    for _ in range(3):
        seen.append(fingerprint())
        node.run(**values(node))
        assert fingerprint() == seen[-1], "the next run would load the model again for nothing"
        target.unlink()
        assert fingerprint() == fingerprint() != seen[-1]
    assert len(set(seen)) == 3, "a host that keeps old results would answer although the file has gone"
    # Another request for the same file knows nothing of this one.
    assert fingerprint(header="official") == seen[0]
    source.write_bytes(b"another model")
    assert fingerprint(header="official") != seen[0]


def test_fingerprint_of_what_cannot_be_known_is_always_new(node: Any) -> None:
    for changes in ({"model": "gone.safetensors"}, {"output_name": None}):
        one, other = (node.IS_CHANGED(**values(node, **changes)) for _ in range(2))
        assert math.isnan(one)
        assert [one] != [other], "the same NaN object would count as equal in a list"


def test_two_requests_for_one_file_do_not_trust_each_other(node: Any) -> None:
    before = node.IS_CHANGED(**values(node))
    node.run(**values(node))
    node.run(**values(node, output_name="a-DF11", header="official", if_exists="replace"))
    assert node.IS_CHANGED(**values(node)) != before
