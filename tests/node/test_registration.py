"""The node registers whatever state the native part is in, and says what is wrong."""

from __future__ import annotations

import builtins
import logging
import sys
from types import ModuleType
from typing import Any

import pytest

from . import fake_native
from .stub_host import StubHost, load_pack

NAME = "DFloat11Compress"
NODES = {NAME, "DFloat11CompressFolder", "DFloat11Inspect", "DFloat11Restore", "DFloat11Verify"}


def module(**content: object) -> ModuleType:
    made = ModuleType("df11_native")
    made.__dict__.update(content)
    return made


def break_import(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.delitem(sys.modules, "df11_native", raising=False)
    original = builtins.__import__

    def fail(name: str, *rest: Any, **more: Any) -> ModuleType:
        if name == "df11_native":
            raise error
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fail)


class PanicException(BaseException):
    """As pyo3 raises it."""


FAULTS = {
    "missing": ModuleNotFoundError("No module named 'df11_native'", name="df11_native"),
    "load-error": OSError("libsomething.so.1: cannot open shared object file\nmore"),
    "half": ModuleNotFoundError("No module named 'df11_native.df11_native'", name="df11_native.df11_native"),
    "panic": PanicException("at init"),
    "fallback": module(__version__="0.1.0"),
    "marked fallback": module(PROTOCOL=3, NATIVE=False),
    "protocol": module(PROTOCOL=99),
}


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("missing", "missing", "is not installed"),
        ("load-error", "load-error", "libsomething.so.1"),
        ("half", "load-error", "df11_native.df11_native"),
        ("panic", "load-error", "at init"),
        ("fallback", "no-build", "no ready-made native part"),
        ("marked fallback", "no-build", "no ready-made native part"),
        ("protocol", "protocol", "interface 99 instead of 3"),
    ],
)
def test_registers_and_says_what_is_wrong(
    host: StubHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    kind: str,
    words: str,
) -> None:
    found = FAULTS[fault]
    if isinstance(found, ModuleType):
        monkeypatch.setitem(sys.modules, "df11_native", found)
    else:
        break_import(monkeypatch, found)
    host.add("diffusion_models", "a.safetensors")
    with caplog.at_level(logging.INFO):
        pack = load_pack()
    node = pack.NODE_CLASS_MAPPINGS[NAME]
    problem = pack.comfy_node.native.problem()
    assert problem.kind == kind
    assert words in problem.sentence
    assert sys.executable in problem.sentence and "install.py" in problem.sentence
    assert "\n" not in problem.sentence
    assert [(r.levelname, r.getMessage(), r.exc_info) for r in caplog.records] == [("WARNING", problem.sentence, None)]
    assert set(pack.NODE_CLASS_MAPPINGS) == NODES
    assert node.INPUT_TYPES()["required"]["architecture"][0] == ["auto"]
    for name, node in pack.NODE_CLASS_MAPPINGS.items():
        assert pack.NODE_DISPLAY_NAME_MAPPINGS[name] == f"{node.TITLE} (native part missing)"
        assert node.DESCRIPTION.startswith(problem.sentence)
        assert node.VALIDATE_INPUTS() == problem.sentence
        assert host.events.pop() == ("df11.refused", {"sentence": problem.sentence})
        widgets = {**node.INPUT_TYPES()["required"], **node.INPUT_TYPES()["optional"]}
        values = {
            n: kind[0] if isinstance(kind, list) else options["default"] for n, (kind, options) in widgets.items()
        }
        with pytest.raises(Exception, match="native part|df11_native"):
            node().run(unique_id="1", **values)


def test_registers_quietly_when_all_is_well(
    host: StubHost, script: fake_native.Script, caplog: pytest.LogCaptureFixture
) -> None:
    pack = load_pack()
    node = pack.NODE_CLASS_MAPPINGS[NAME]
    assert not caplog.records
    assert node.DESCRIPTION.startswith("Compresses")
    assert set(pack.NODE_CLASS_MAPPINGS) == NODES
    for name, node in pack.NODE_CLASS_MAPPINGS.items():
        assert pack.NODE_DISPLAY_NAME_MAPPINGS[name] == node.TITLE
        assert (node.CATEGORY, node.OUTPUT_NODE) == ("DFloat11", True)
        assert node.SEARCH_ALIASES[0] == "DF11"
        assert callable(getattr(node, node.FUNCTION))
        assert len(node.RETURN_NAMES) == len(node.OUTPUT_TOOLTIPS) == len(node.RETURN_TYPES)
        assert node.RETURN_TYPES in (("*", "STRING"), ("STRING",))


def test_without_install_script_the_remedy_is_the_package(
    host: StubHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from comfy_node import native

    break_import(monkeypatch, FAULTS["missing"])
    monkeypatch.setattr(native, "PACK_FOLDER", tmp_path)
    native.problem.cache_clear()
    problem = native.problem()
    assert problem and problem.sentence.endswith("-m pip install --upgrade dfloat11-compress and restart ComfyUI.")
    native.problem.cache_clear()


def test_every_input_has_a_tooltip_and_a_default(pack: ModuleType) -> None:
    for node in pack.NODE_CLASS_MAPPINGS.values():
        inputs = node.INPUT_TYPES()
        assert inputs["hidden"] == {"unique_id": "UNIQUE_ID"}
        for name, (kind, options) in {**inputs["required"], **inputs["optional"]}.items():
            assert options["tooltip"], name
            assert isinstance(kind, list) or "default" in options, name
            assert bool(options.get("advanced")) == (name in inputs["optional"]), name


def test_only_supported_architectures_are_offered(pack: ModuleType) -> None:
    """Neither refused ones nor those of files that ComfyUI does not load."""
    offered = pack.NODE_CLASS_MAPPINGS[NAME].INPUT_TYPES()["required"]["architecture"][0]
    assert offered == ["auto", "Alpha", "Beta"]


def test_a_faulty_definition_of_the_users_does_not_take_the_node_away(
    pack: ModuleType, script: fake_native.Script, caplog: pytest.LogCaptureFixture
) -> None:
    script.broken_definitions = True
    inputs = pack.NODE_CLASS_MAPPINGS[NAME].INPUT_TYPES
    assert inputs()["required"]["architecture"][0] == ["auto", "Alpha", "Beta"]
    inputs()
    assert [r.getMessage() for r in caplog.records] == ["DFloat11 Compress: bad.toml has no id [E_DEFINITION]"]
