"""Widgets that several nodes have, and the form of all of them."""

from __future__ import annotations

from typing import Any

from ..service.naming import mark

Widget = tuple[Any, dict[str, Any]]


def choice(values: list[str], tooltip: str, advanced: bool = False) -> Widget:
    """A list to pick from; the first is the default."""
    return (values, {"tooltip": tooltip, **({"advanced": True} if advanced else {}), **mark()})


def number(default: int, most: int, tooltip: str, least: int = 0, step: int = 1) -> Widget:
    """A whole number; all of ours are for the few who need them."""
    return ("INT", {"default": default, "min": least, "max": most, "step": step, "advanced": True, "tooltip": tooltip})


def text(default: str, tooltip: str) -> Widget:
    """One line of text."""
    return ("STRING", {"default": default, "tooltip": tooltip})


def header() -> Widget:
    return choice(
        ["self-describing", "official"],
        "self-describing: keeps what is needed to restore and check the source. "
        "official: byte for byte what the official tool writes.",
    )


def verify() -> Widget:
    return choice(
        ["full", "off"], "full: decodes what was written and compares every bit before the file gets its name."
    )


def if_exists() -> Widget:
    return choice(
        ["skip", "error", "replace", "number"],
        "skip: does nothing if the file is already this result, and stops if it is another.",
    )


def cast() -> Widget:
    return choice(
        ["none", "to-bf16"],
        "to-bf16: rounds F32 and F16 weights, which is not lossless. The report says how many values changed.",
        advanced=True,
    )


def max_rate() -> Widget:
    return number(0, 100_000, "Megabytes of the source a second; 0: no limit. For shared and network drives.")


def max_memory() -> Widget:
    return number(0, 1_048_576, "Memory for the run in MiB; 0: a quarter of what is free, at most 1024.", step=64)


def switch(tooltip: str) -> Widget:
    """Something that few want, off by default."""
    return ("BOOLEAN", {"default": False, "advanced": True, "tooltip": tooltip})


def threads() -> Widget:
    return number(0, 1024, "0: all cores, at low priority.")


def keep_uncompressed() -> Widget:
    return switch(
        "Leaves parts of the model as they are that DFloat11 cannot hold or would make larger, "
        "where the loader takes them so. The report names them."
    )


def for_the_few() -> dict[str, Widget]:
    """What a compression has beside that; advanced widgets."""
    return {
        "cast": cast(),
        "max_rate": max_rate(),
        "max_memory": max_memory(),
        "threads": threads(),
        # Behind the others: saved workflows know widgets by their order.
        "keep_uncompressed": keep_uncompressed(),
    }
