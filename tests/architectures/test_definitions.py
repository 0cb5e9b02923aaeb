"""Every architecture file obeys the schema, contradicts no other, and has the units that the loader has."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from . import definitions
from .definitions import Definition

FILES = definitions.load_files()
BY_ID = definitions.by_id()
LOADABLE = {id_: definition for id_, definition in BY_ID.items() if "refused" not in definition}
COMFYUI = {id_: definition for id_, definition in LOADABLE.items() if definitions.layout(definition) == "comfyui"}
DATA = Path(__file__).parents[1] / "data"
PATTERN_DICTS = json.loads((DATA / "pattern_dicts.json").read_text())["models"]
OFFICIAL = json.loads((DATA / "official_pattern_dicts.json").read_text())
# Made from the patterns of another model's release; no release of their own is known.
UNPUBLISHED = {"qwen2-tied": "qwen3-4b", "llama-3-tied": "qwen3-4b"}

STRINGS = [str]
SHAPE_RULES = [(str, int, int)]
# Table -> key -> type. A list holds the type of its items, a tuple the types of a list of that length, "?" marks a key
# that may be absent.
SCHEMA: dict[str, dict[str, Any]] = {
    "": {"schema": int, "id": str, "name": str, "layout?": str, "variant_of?": str, "source": str,
         "tied?": [(str, str)], "refused?": dict, "loader?": dict, "detect?": dict, "keys?": dict, "dtype?": dict,
         "shapes?": dict, "units?": [dict]},
    "refused": {"reason": str, "remedy": str},
    "loader": {"node": str, "pack": str, "url": str, "note?": str, "needs?": STRINGS, "sizes?": [(str, [int])]},
    "detect": {"all?": STRINGS, "any?": [STRINGS], "none?": STRINGS, "shape?": SHAPE_RULES,
               "not_shape?": SHAPE_RULES, "config?": [(str, object)], "not_config?": [(str, object)]},
    "keys": {"drop?": STRINGS, "rename?": [(str, str)], "keep_f32?": STRINGS, "keep_always?": STRINGS},
    "dtype": {"plain_unless_bf16": bool},
    "shapes": {"from_bias": bool, "rules?": [dict]},
    "rules": {"pattern": str, "side": str, "key?": str, "in_unit?": STRINGS, "axis": int, "factor": int},
    "units": {"pattern": str, "attributes": STRINGS},
}  # fmt: skip


def has_type(value: object, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return isinstance(value, list) and len(value) == len(kind) and all(map(has_type, value, kind))
    if isinstance(kind, list):
        return isinstance(value, list) and all(has_type(item, kind[0]) for item in value)
    return kind is object or type(value) is kind


def faults(table: str, value: dict[str, Any]) -> list[str]:
    fields = {key.rstrip("?"): kind for key, kind in SCHEMA[table].items()}
    required = {key for key in SCHEMA[table] if not key.endswith("?")}
    found = [f"[{table}] lacks {key}" for key in sorted(required - value.keys())]
    for key, item in value.items():
        if key not in fields or not has_type(item, fields[key]):
            found.append(f"[{table}] {key} is unknown or of the wrong type")
        elif key in SCHEMA:
            for inner in item if isinstance(item, list) else [item]:
                found += faults(key, inner)
    return found


def patterns(definition: Definition) -> list[str]:
    keys, shapes = definition.get("keys", {}), definition.get("shapes", {})
    return [
        *[unit["pattern"] for unit in definition.get("units", [])],
        *[rule["pattern"] for rule in shapes.get("rules", [])],
        *[pattern for kind in ("drop", "keep_f32", "keep_always") for pattern in keys.get(kind, [])],
        *[pattern for pattern, _ in keys.get("rename", [])],
    ]


@pytest.mark.parametrize("file", FILES)
def test_file_obeys_the_schema(file: str) -> None:
    definition = FILES[file]
    assert faults("", definition) == []
    assert definition["schema"] == 1
    for rule in definition.get("shapes", {}).get("rules", []):
        assert rule["side"] in ("in", "out")
        assert ("key" in rule) != ("in_unit" in rule)


@pytest.mark.parametrize("file", FILES)
def test_file_is_named_after_its_id(file: str) -> None:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "-", FILES[file]["id"])
    assert file == f"{words.lower()}.toml"


def test_ids_are_unique() -> None:
    assert len(BY_ID) == len(FILES)


@pytest.mark.parametrize("id_", BY_ID)
def test_definition_is_either_loadable_or_refused(id_: str) -> None:
    definition = BY_ID[id_]
    assert ("refused" in definition) != ("loader" in definition)
    assert ("refused" in definition) != bool(definition.get("units"))
    assert ("variant_of" in definition) != ("detect" in definition)
    if "variant_of" in definition:
        assert "detect" in BY_ID[definition["variant_of"]]


@pytest.mark.parametrize("id_", BY_ID)
def test_patterns_mean_the_same_in_python_and_rust(id_: str) -> None:
    for pattern in patterns(BY_ID[id_]):
        re.compile(pattern)
        assert not re.search(r"[*+?}]\+|\(\?[=!<]|\\[1-9]|\\Z", pattern), f"{pattern}: not in Rust's regex"


def units(definition: Definition) -> list[list[Any]]:
    return [[unit["pattern"], unit["attributes"]] for unit in definition["units"]]


def test_units_are_those_of_the_official_releases() -> None:
    """Patterns, attributes and both orders, to the letter; and every published release is named by one definition."""
    released: dict[str, str] = {}
    for id_, definition in LOADABLE.items():
        if id_ in COMFYUI:
            continue
        named = re.findall(r"(\S+-DF11) @ ([0-9a-f]{7})", definition["source"])
        for release, commit in named:
            if id_ not in UNPUBLISHED:
                assert release not in released, release
                assert OFFICIAL["releases"][release]["sha"].startswith(commit), release
                released[release] = id_
        keys = {OFFICIAL["releases"][release.removeprefix("DFloat11/")]["patterns"] for release, _ in named}
        assert keys == {UNPUBLISHED.get(id_, *keys)}
        assert [units(definition)] == [OFFICIAL["patterns"][key] for key in keys], id_
    assert released.keys() == OFFICIAL["releases"].keys()
    assert len(released) == 40


def test_units_are_those_of_the_loader() -> None:
    """Same models, patterns and attribute order; the possessive `++` in one pattern matches the same names as `+`."""
    ours = {id_: units(definition) for id_, definition in COMFYUI.items()}
    theirs = {
        id_: [[pattern.replace("++", "+"), attributes] for pattern, attributes in model["units"]]
        for id_, model in PATTERN_DICTS.items()
    }
    assert ours == theirs


@pytest.mark.parametrize("id_", LOADABLE)
def test_loader_demands_name_units_that_exist(id_: str) -> None:
    loader = LOADABLE[id_]["loader"]
    for unit in [*loader.get("needs", []), *[unit for unit, _ in loader.get("sizes", [])]]:
        assert any(re.fullmatch(pattern["pattern"], unit) for pattern in LOADABLE[id_]["units"]), unit


def exclude(one: Definition, other: Definition) -> bool:
    """Whether the rules alone show that no set of tensors can match both."""
    for a, b in ((one["detect"], other["detect"]), (other["detect"], one["detect"])):
        forbidden = set(b.get("none", []))
        if forbidden & set(a.get("all", [])) or any(forbidden >= set(group) for group in a.get("any", [])):
            return True
        for key, value in a.get("config", []):
            if [key, value] in b.get("not_config", []) or any(
                rule[0] == key and rule[1] != value for rule in b.get("config", [])
            ):
                return True
        for name, axis, value in a.get("shape", []):
            if [name, axis, value] in b.get("not_shape", []):
                return True
            if any(rule[:2] == [name, axis] and rule[2] != value for rule in b.get("shape", [])):
                return True
    return False


def test_definitions_that_share_a_name_exclude_each_other() -> None:
    """A file of its own is never asked about in another layout than ComfyUI's, and a folder in that one."""
    detected = [definition for definition in BY_ID.values() if "detect" in definition]
    together = [
        (a, b)
        for a, b in combinations(detected, 2)
        if (definitions.layout(a) == "comfyui") == (definitions.layout(b) == "comfyui")
    ]
    related = [(a, b) for a, b in together if set(a["detect"]["all"]) & set(b["detect"]["all"])]
    assert len(related) > 60
    assert [(a["id"], b["id"]) for a, b in related if not exclude(a, b)] == []


def test_documented_example_is_the_file() -> None:
    text = (definitions.FOLDER.parent / "docs" / "DEFINITIONS.md").read_text()
    assert f"```toml\n{(definitions.FOLDER / 'lens.toml').read_text()}```\n" in text
