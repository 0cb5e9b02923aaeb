"""Compress and load in one queue; the templates against the server's own definitions."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.comfy_client import ComfyClient, Result
from support.comfy_server import ROOT, ComfyServer
from support.tiny_models import sampling_prompt

from .conftest import MakeModel
from .prompts import compress, from_workflow

# What the report of each node begins with, run as its template has it.
SHOWN = {
    "DFloat11Compress": "Done: ",
    "DFloat11CompressFolder": "1 compressed (2 MB -> ",
    "DFloat11Inspect": "Can be compressed: 2 MB -> ",
    "DFloat11Restore": "Done: ",
    "DFloat11Verify": "Sound at level full: ",
}
WORKFLOWS = {path.stem: path for path in sorted((ROOT / "workflows").glob("*.json"))}


def test_one_queue_compresses_loads_and_samples(client: ComfyClient, model: MakeModel) -> None:
    model()
    loader = {"class_type": "TestOfficialLoader", "inputs": {"model_name": ["10", 0], "architecture": "Flux"}}
    prompt = compress("model.safetensors", node="10") | sampling_prompt("Flux", loader)
    together = client.run(prompt, timeout=180)
    assert together.status == "success"
    # Queued again, nothing is compressed or loaded again.
    again = client.run(prompt)
    assert set(again.of_type("execution_cached")[0].data["nodes"]) == set(prompt)
    by_name = {**loader, "inputs": {"model_name": "model-DF11.safetensors", "architecture": "Flux"}}
    alone = client.run(sampling_prompt("Flux", by_name), timeout=180)
    assert together.outputs["5"]["text"] == alone.outputs["5"]["text"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_template_fits_the_servers_definitions(client: ComfyClient, name: str) -> None:
    definitions = client.object_info()
    workflow = json.loads(WORKFLOWS[name].read_text())
    known = [node for node in workflow["nodes"] if node["type"] in definitions]
    types = {node["type"] for node in known}
    assert "PreviewAny" in types and any(kind in SHOWN for kind in types)
    for node in known:
        definition = definitions[node["type"]]
        inputs: dict[str, Any] = {**definition["input"]["required"], **definition["input"].get("optional", {})}
        order = [entry for part in ("required", "optional") for entry in definition["input_order"].get(part, [])]
        assert [entry["name"] for entry in node["inputs"]] == order
        for entry in node["inputs"]:
            kind = inputs[entry["name"]][0]
            assert entry["type"] == ("COMBO" if isinstance(kind, list) else kind)
        assert [out["type"] for out in node["outputs"]] == definition["output"][: len(node["outputs"])]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_template_runs(client: ComfyClient, model: MakeModel, name: str) -> None:
    original = model().read_bytes()
    workflow = json.loads(WORKFLOWS[name].read_text())
    changes = {kind: {"model": "model.safetensors"} for kind in ("DFloat11Compress", "DFloat11Inspect")}
    changes |= {kind: {"df11_model": "model-DF11.safetensors"} for kind in ("DFloat11Restore", "DFloat11Verify")}
    (ours,) = [node["type"] for node in workflow["nodes"] if node["type"] in SHOWN]
    if "df11_model" in changes.get(ours, {}):
        client.run(compress("model.safetensors", node="before")).require_success()
        model().unlink()
    result = client.run(from_workflow(workflow, client.object_info(), changes), timeout=180).require_success()
    shown = [text for output in result.outputs.values() for text in output.get("text", [])]
    assert sum(text.startswith(SHOWN[ours]) for text in shown) == 2, "the node and the preview of its report"
    if ours == "DFloat11Restore":
        assert model_path(client, result).read_bytes() == original


def model_path(client: ComfyClient, result: Result) -> Path:
    """The file that a report names."""
    (line,) = [line for line in result.outputs["1"]["text"][0].splitlines() if line.startswith("Written to: ")]
    return Path(line.removeprefix("Written to: "))


def test_templates_and_help_are_served(comfy: ComfyServer, client: ComfyClient) -> None:
    def fetch(path: str) -> bytes:
        with urllib.request.urlopen(f"http://{comfy.address}{urllib.parse.quote(path)}", timeout=30) as answer:
            content: bytes = answer.read()
        return content

    pack = "dfloat11-compress"
    assert sorted(client.request("/workflow_templates")[pack]) == list(WORKFLOWS)
    for name, path in WORKFLOWS.items():
        assert fetch(f"/api/workflow_templates/{pack}/{name}.json") == path.read_bytes()
    for kind in SHOWN:
        page = ROOT / f"web/docs/{kind}.md"
        assert fetch(f"/extensions/{pack}/docs/{kind}.md") == page.read_bytes()
