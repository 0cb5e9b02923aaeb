"""The templates fit the node they use. tests/host checks them against real servers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .stub_host import PACK

FOLDER = PACK / "workflows"
FILES = sorted(FOLDER.glob("*.json"))
VERSION = re.search(r'^version = "(.+)"', (PACK / "Cargo.toml").read_text(), re.MULTILINE)
# Nodes of others: inputs with their types, and outputs. The first has an output only in newer ComfyUIs.
OTHERS = {
    "PreviewAny": ({"source": "*"}, []),
    "DFloat11ModelLoader": ({"dfloat11_model_name": "COMBO"}, ["MODEL"]),
    "MarkdownNote": ({}, []),
}


def load(path: Path) -> dict[str, Any]:
    workflow: dict[str, Any] = json.loads(path.read_text())
    return workflow


OURS = {
    "Compress a folder": "DFloat11CompressFolder",
    "Compress a model": "DFloat11Compress",
    "Compress and load": "DFloat11Compress",
    "Look before compressing": "DFloat11Inspect",
    "Restore a model": "DFloat11Restore",
    "Verify a file": "DFloat11Verify",
}


def test_there_is_one_for_each_task_and_one_folder(pack: ModuleType) -> None:
    assert [path.stem for path in FILES] == list(OURS)
    assert set(OURS.values()) == set(pack.NODE_CLASS_MAPPINGS)
    # ComfyUI knows these names too, and serves only one of several.
    others = ("example_workflows", "example", "examples", "workflow")
    assert not [name for name in others if (PACK / name).exists()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestTemplate:
    def test_our_node_is_as_defined(self, path: Path, pack: ModuleType) -> None:
        (node,) = [
            node for node in load(path)["nodes"] if node["type"].startswith("DFloat11") and node["type"] not in OTHERS
        ]
        assert node["type"] == OURS[path.stem]
        defined = pack.NODE_CLASS_MAPPINGS[node["type"]]
        inputs = defined.INPUT_TYPES()
        widgets = {**inputs["required"], **inputs["optional"]}
        assert [i["name"] for i in node["inputs"]] == [i["widget"]["name"] for i in node["inputs"]] == list(widgets)
        for entry, value in zip(node["inputs"], node["widgets_values"], strict=True):
            kind, options = widgets[entry["name"]]
            assert entry["type"] == ("COMBO" if isinstance(kind, list) else kind)
            if entry["name"] in ("model", "df11_model"):
                assert value == pack.comfy_node.service.sources.PLACEHOLDER
            else:
                assert value == (kind[0] if isinstance(kind, list) else options["default"])
        assert len(node["widgets_values"]) == len(widgets)
        assert tuple(o["name"] for o in node["outputs"]) == defined.RETURN_NAMES
        assert tuple(o["type"] for o in node["outputs"]) == defined.RETURN_TYPES
        assert VERSION
        assert (node["properties"]["cnr_id"], node["properties"]["ver"]) == ("dfloat11-compress", VERSION[1])

    def test_nodes_of_others_are_as_known(self, path: Path) -> None:
        for node in load(path)["nodes"]:
            if node["type"] not in OURS.values():
                inputs, outputs = OTHERS[node["type"]]
                assert {i["name"]: i["type"] for i in node["inputs"]} == inputs
                assert [o["type"] for o in node["outputs"]] == outputs

    def test_links_are_whole(self, path: Path) -> None:
        workflow = load(path)
        nodes = {node["id"]: node for node in workflow["nodes"]}
        assert len(nodes) == len(workflow["nodes"])
        assert sorted(node["order"] for node in nodes.values()) == list(range(len(nodes)))
        for link, origin, output, target, slot, _ in workflow["links"]:
            assert link in nodes[origin]["outputs"][output]["links"]
            assert nodes[target]["inputs"][slot]["link"] == link
        used = {i["link"] for node in nodes.values() for i in node["inputs"]} - {None}
        given = {link for node in nodes.values() for o in node["outputs"] for link in o["links"]}
        assert used == given == {link[0] for link in workflow["links"]}
        assert workflow["last_node_id"] >= max(nodes) and workflow["last_link_id"] >= max(used)


def test_the_name_goes_into_the_loader_and_the_report_is_shown() -> None:
    workflow = load(FOLDER / "Compress and load.json")
    types = {node["id"]: node["type"] for node in workflow["nodes"]}
    ways = {(types[origin], output, types[target]) for _, origin, output, target, _, _ in workflow["links"]}
    assert ways == {
        ("DFloat11Compress", 0, "DFloat11ModelLoader"),
        ("DFloat11Compress", 1, "PreviewAny"),
        # A loader alone would not run: it is no output node.
        ("DFloat11ModelLoader", 0, "PreviewAny"),
    }
