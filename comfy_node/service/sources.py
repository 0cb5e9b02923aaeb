"""The list of models to pick from, and the way back from a choice to a file."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import NodeError
from .ports import Folders

DIFFUSION_MODELS = "diffusion_models"
CHECKPOINTS = "checkpoints"
_SUFFIXES = (".safetensors", ".sft")


@dataclass(frozen=True)
class Source:
    """A file in the model folders."""

    kind: str
    name: str
    """As the host lists it."""
    path: str


def choices(folders: Folders) -> list[str]:
    """Every safetensors file of `diffusion_models`, then those of `checkpoints` as `checkpoints/<name>`."""
    return list(_listed(folders))


def find(folders: Folders, choice: str) -> Source:
    """The file behind a choice; workflows saved on a system with other separators fit too.

    Only what is in the list is found, so no choice leads out of the model folders. Raises NodeError.
    """
    choice = str(choice)  # a prompt from outside may hold anything
    listed = _listed(folders)
    if not listed:
        raise NodeError(
            "There is no .safetensors file in ComfyUI's diffusion_models and checkpoints folders. "
            "Put a BF16 model there and refresh the node definitions (key R)."
        )
    entry = listed.get(choice) or {_slashes(label): entry for label, entry in listed.items()}.get(_slashes(choice))
    if entry is None:
        raise NodeError(f"The model {choice!r} is not in the list. Refresh the node definitions (key R) and pick one.")
    kind, name = entry
    path = folders.path(kind, name)
    if path is None:
        raise NodeError(f"The model {choice!r} has gone. Refresh the node definitions (key R) and pick another.")
    return Source(kind, name, path)


def _listed(folders: Folders) -> dict[str, tuple[str, str]]:
    """Label -> kind and name. A diffusion model in a subfolder `checkpoints` goes before a checkpoint of that name."""
    listed = {name: (DIFFUSION_MODELS, name) for name in folders.names(DIFFUSION_MODELS)}
    for name in folders.names(CHECKPOINTS):
        listed.setdefault(f"{CHECKPOINTS}/{name}", (CHECKPOINTS, name))
    return {label: entry for label, entry in listed.items() if label.lower().endswith(_SUFFIXES)}


def _slashes(name: str) -> str:
    return name.replace("\\", "/")
