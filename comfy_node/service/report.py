"""The report of a finished job as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .wording import duration, size


def summary(report: dict[str, Any]) -> str:
    """One line: what happened, the sizes, the time."""
    sizes = f"{size(report['source_bytes'])} -> {size(report['target_bytes'])} ({100 * report['ratio']:.1f} %)"
    if report["status"] == "already-done":
        return f"Already done: {sizes}, checked in {duration(report['seconds'])}"
    speed = f"{size(report['source_bytes'] / max(report['seconds'], 1e-3))}/s"
    return f"Done: {sizes} in {duration(report['seconds'])}, {speed}"


def text(report: dict[str, Any], model_name: str, remarks: list[str], has_node: Callable[[str], bool]) -> str:
    """The whole report. `remarks` are the pack's own notes; `has_node` tells which nodes this ComfyUI has."""
    lines = [
        summary(report),
        f"Source: {report['source']}",
        f"Written to: {report['target']}",
        f"Name in the loader's list: {model_name}",
        f"Architecture: {report['architecture_name']} ({report['architecture']}). Definition: {report['definition']}",
        f"Header: {report['header']}. Verification: {report['verify']}.",
        *_units(report["units"]),
        *loader(report["loader"], has_node),
    ]
    return "\n".join(lines + [f"Note: {note}" for note in [*remarks, *report["notes"]]])


def _units(units: list[dict[str, Any]]) -> list[str]:
    if not units:  # A skipped run encoded none.
        return []
    weights = sum(unit["weights"] for unit in units)
    bits = sum(unit["weights"] * unit["bits_per_weight"] for unit in units) / weights
    codes = {unit["code"] for unit in units}
    counts = ", ".join(f"{sum(unit['code'] == code for unit in units)} {code}" for code in sorted(codes))
    return [f"Compression units: {len(units)} ({counts}), {weights / 1e6:.1f} million weights, {bits:.2f} bits each"]


def loader(found: dict[str, Any] | None, has_node: Callable[[str], bool]) -> list[str]:
    """Which node loads a result, and whether this ComfyUI has it. `found`: what the architecture's definition says."""
    if found is None:
        return ["Load it with: unknown, since the definition names no loader"]
    node, pack = found["node"], found["pack"]
    if has_node(node):
        lines = [f"Load it with: {node} (pack {pack}, installed here)"]
    else:
        lines = [f"Load it with: {node}. It is not installed here: get the pack {pack} from {found['url']}"]
    return lines + ([str(found["note"])] if found.get("note") else [])
