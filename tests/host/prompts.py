"""Prompts as a browser would send them."""

from __future__ import annotations

from typing import Any

from support.comfy_client import Event, Prompt, PromptRejected

NODE = "DFloat11Compress"
DEFAULTS = {
    "architecture": "auto",
    "output_name": "",
    "header": "self-describing",
    "verify": "full",
    "if_exists": "skip",
}
DEFAULTS_OF: dict[str, dict[str, Any]] = {
    NODE: DEFAULTS,
    "DFloat11CompressFolder": {
        "folder": "diffusion_models", "pattern": "*", "limit": 0, "continue_on_error": True,
        "header": "self-describing", "verify": "full",
    },
    "DFloat11Inspect": {},
    "DFloat11Verify": {"source": "none", "level": "full"},
    "DFloat11Restore": {"output_name": "", "if_exists": "skip"},
}  # fmt: skip


def compress(model: str, node: str = "1", **widgets: Any) -> Prompt:
    """One DFloat11 Compress, with another value here and there."""
    return {node: {"class_type": NODE, "inputs": {**DEFAULTS, "model": model, **widgets}}}


def prompt_of(kind: str, node: str = "1", **widgets: Any) -> Prompt:
    """One node of ours; required widgets that are not given have their defaults."""
    return {node: {"class_type": kind, "inputs": {**DEFAULTS_OF[kind], **widgets}}}


def sentences(rejected: PromptRejected) -> set[str]:
    """What the server says about each input of a rejected prompt."""
    nodes = rejected.details["node_errors"].values()
    return {error["details"].partition(" - ")[2] or error["details"] for node in nodes for error in node["errors"]}


def from_workflow(workflow: dict[str, Any], definitions: dict[str, Any], changes: dict[str, Any]) -> Prompt:
    """What the frontend makes of a saved workflow: widget values by position, links by slot.

    `changes`: node type -> other widget values by name.
    """
    origins = {link[0]: [str(link[1]), link[2]] for link in workflow["links"]}
    prompt = {}
    for node in workflow["nodes"]:
        if node["type"] not in definitions:
            continue
        values = iter(node["widgets_values"])
        inputs = {entry["name"]: next(values) for entry in node["inputs"] if "widget" in entry}
        inputs.update(changes.get(node["type"], {}))
        inputs.update({entry["name"]: origins[entry["link"]] for entry in node["inputs"] if entry["link"] is not None})
        prompt[str(node["id"])] = {"class_type": node["type"], "inputs": inputs}
    return prompt


def busiest_second(events: list[Event]) -> int:
    """The most events within any one second."""
    times = [event.time for event in events]
    return max(sum(start <= time < start + 1 for time in times) for start in times)
