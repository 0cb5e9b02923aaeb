"""Architecture definitions on disk and the list to pick from."""

from __future__ import annotations

import logging
import os
from functools import lru_cache

from .. import PACK_FOLDER, native
from ..errors import NodeError
from .ports import Folders

AUTO = "auto"
# The layout of the files that ComfyUI loads.
LAYOUT = "comfyui"


def definitions(folders: Folders) -> tuple[str, ...]:
    """The folders with definitions; the native part lets later ones win, so the user's comes last."""
    candidates = [str(PACK_FOLDER / "architectures"), os.path.join(folders.user(), "dfloat11", "architectures")]
    return tuple(folder for folder in candidates if os.path.isdir(folder))


def choices(folders: Folders) -> list[str]:
    """`auto`, then the ids that the native part can compress for ComfyUI; without it `auto` alone."""
    if native.problem():
        return [AUTO]
    found = definitions(folders)
    return [AUTO, *_ids(found, tuple(os.stat(folder).st_mtime_ns for folder in found))]


# ComfyUI asks for a node's inputs several times a prompt.
@lru_cache(maxsize=4)
def _ids(found: tuple[str, ...], _changed: tuple[int, ...]) -> tuple[str, ...]:
    try:
        known = native.architectures(found)
    except NodeError as error:
        # A faulty file of the user's must not take the node away. A run says it again, and stops.
        logging.warning("DFloat11 Compress: %s", error)
        known = native.architectures(())
    return tuple(str(entry["id"]) for entry in known if entry["supported"] and entry["layout"] == LAYOUT)
