"""The translations and the nodes' definitions name the same things; English says what the definitions say."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from .stub_host import PACK

LOCALES = PACK / "locales"
LANGUAGES = sorted(path.name for path in LOCALES.iterdir())


def definitions(pack: ModuleType) -> dict[str, Any]:
    """What a locale must hold, in English."""
    nodes = {}
    for name, node in pack.NODE_CLASS_MAPPINGS.items():
        kinds = node.INPUT_TYPES()
        inputs = {**kinds["required"], **kinds.get("optional", {})}
        outputs = zip(node.RETURN_NAMES, node.OUTPUT_TOOLTIPS, strict=True)
        nodes[name] = {
            "display_name": pack.NODE_DISPLAY_NAME_MAPPINGS[name],
            "description": node.DESCRIPTION,
            "inputs": {key: {"name": key, "tooltip": widget[1]["tooltip"]} for key, widget in inputs.items()},
            "outputs": {str(at): {"name": key, "tooltip": tip} for at, (key, tip) in enumerate(outputs)},
        }
    return nodes


def texts(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, str):
        return {path: value}
    found: dict[str, str] = {}
    for key, inner in value.items():
        found |= texts(inner, f"{path}/{key}")
    return found


def load(language: str) -> dict[str, Any]:
    return dict(json.loads((LOCALES / language / "nodeDefs.json").read_text("utf-8")))


def test_languages() -> None:
    assert LANGUAGES == ["en", "zh"]


def test_english_is_what_the_definitions_say(pack: ModuleType) -> None:
    expected = definitions(pack)
    assert load("en") == expected, f"locales/en/nodeDefs.json should be:\n{json.dumps(expected, indent=2)}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_names_every_node_input_and_output(pack: ModuleType, language: str) -> None:
    wanted, found = texts(definitions(pack)), texts(load(language))
    assert found.keys() == wanted.keys()
    assert all(text.strip() for text in found.values())


def test_chinese_is_translated(pack: ModuleType) -> None:
    english, chinese = texts(load("en")), texts(load("zh"))
    # Whatever a person reads has Chinese in it.
    assert [key for key, text in chinese.items() if not any("\u4e00" <= letter <= "\u9fff" for letter in text)] == []
    assert english.keys() == chinese.keys()
