"""Where the result goes, and the name under which a loader finds it there."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

from ..errors import NodeError
from .ports import Folders
from .sources import DIFFUSION_MODELS, Source


@dataclass(frozen=True)
class Placement:
    """A place for the result."""

    target: str
    note: str
    """Why it is not the first choice; empty when it is."""


def place(folders: Folders, source: Source, file_name: str, if_exists: str) -> Placement:
    """The first folder that takes the file: next to the source (a checkpoint: in the diffusion_models folder), then
    the output folder that the loader's list contains.

    Raises NodeError when there is none, or when the loader would read another file under the same name.
    """
    candidates = _candidates(folders, source)
    for folder in candidates:
        target = os.path.join(folder, file_name)
        # A finished result in a read-only folder needs no writing.
        if _can_write(folder) or (if_exists == "skip" and os.path.isfile(target)):
            break
    else:
        raise NodeError(f"No folder for the result can be written: {', '.join(candidates)}. Allow one of them.")
    other = shadowing(folders, target)
    if other:
        raise NodeError(f"{other} Give another output name.")
    if folder == candidates[0]:
        return Placement(target, "")
    return Placement(target, f"{candidates[0]} cannot be written, so the file is in {folder}, which loaders list too.")


def shadowing(folders: Folders, target: str) -> str:
    """A sentence about another file that a loader finds under the target's name; empty if there is none."""
    name = listed_name(folders, target)
    found = folders.path(DIFFUSION_MODELS, name)
    return f"A loader would read {found} under the name {name!r}." if found and not _same(found, target) else ""


def listed_name(folders: Folders, path: str) -> str:
    """The name of a file in the list of a diffusion model loader: relative to the root that holds it."""
    for root in folders.roots(DIFFUSION_MODELS):
        if _inside(path, root):
            return os.path.relpath(path, root)
    raise NodeError(f"{path} is in none of ComfyUI's diffusion_models folders.")


def written(folders: Folders, place: Placement, told: str) -> tuple[str, str, list[str]]:
    """The file that a run wrote, its name in a loader's list, and remarks. `told` is its path as the report has it."""
    # `number` may have changed the name, never the folder, which the report may spell in another way.
    target = os.path.join(os.path.dirname(place.target), os.path.basename(told))
    remarks = [remark for remark in (place.note, shadowing(folders, target)) if remark]
    return target, listed_name(folders, target), remarks


def _candidates(folders: Folders, source: Source) -> list[str]:
    roots = folders.roots(DIFFUSION_MODELS)
    last = [root for root in roots if _inside(root, folders.output())]
    if source.kind == DIFFUSION_MODELS:
        # Of a link its own folder, not that of the file it leads to: caches keep blobs there.
        first = [os.path.dirname(source.path)]
    else:
        # `unet` is the folder's old name; nobody looks there today.
        own = [root for root in roots if root not in last]
        first = sorted(own, key=lambda root: os.path.basename(root) == "unet")
    return first + [root for root in last if root not in first]


def _can_write(folder: str) -> bool:
    """Tries it: permission bits say nothing about read-only mounts, access lists and the administrator."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _inside(path: str, folder: str) -> bool:
    path, folder = _normal(path), _normal(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _same(one: str, other: str) -> bool:
    return _normal(one) == _normal(other)


def _normal(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))
