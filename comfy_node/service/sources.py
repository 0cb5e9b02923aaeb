"""The list of models to pick from, and the way back from a choice to a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch

from ..errors import NodeError
from .ports import Folders

DIFFUSION_MODELS = "diffusion_models"
CHECKPOINTS = "checkpoints"
NONE = "none"
PLACEHOLDER = "(pick a model)"
"""What a template has for a model."""
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


def df11_choices(folders: Folders) -> list[str]:
    """The same, those first whose names look like DF11 files: to look into each would take too long for a list."""
    return sorted(_listed(folders), key=lambda label: "df11" not in label.lower())


def folder_choices(folders: Folders) -> list[str]:
    """Both kinds, and the subfolders in which safetensors files lie, as `<kind>/<subfolder>`."""
    found = {kind: None for kind in (DIFFUSION_MODELS, CHECKPOINTS)}
    for kind, name in sorted(_listed(folders).values(), key=lambda entry: entry[0] != DIFFUSION_MODELS):
        parts = _slashes(name).split("/")[:-1]
        found.update(dict.fromkeys("/".join([kind, *parts[: depth + 1]]) for depth in range(len(parts))))
    return list(found)


def inside(folders: Folders, folder: str, pattern: str) -> list[str]:
    """The choices in a folder and below whose file name, or path below the kind's folder, fits the pattern.

    Raises NodeError where the folder is not one of `folder_choices`.
    """
    folder, wanted = _slashes(str(folder)), _slashes(pattern.strip().lower()) or "*"
    if folder not in folder_choices(folders):
        raise NodeError(f"The folder {folder!r} is not in the list. Refresh the node definitions (key R) and pick one.")

    def fits(kind: str, name: str) -> bool:
        path = _slashes(name)
        names = (path.lower(), path.lower().rpartition("/")[2])
        return f"{kind}/{path}".startswith(folder + "/") and any(fnmatch(name, wanted) for name in names)

    return [label for label, (kind, name) in _listed(folders).items() if fits(kind, name)]


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
    if choice == PLACEHOLDER:
        raise NodeError("No model is picked yet. Click the line that says so on the node, and pick one from the list.")
    entry = listed.get(choice) or {_slashes(label): entry for label, entry in listed.items()}.get(_slashes(choice))
    if entry is None:
        raise NodeError(f"The model {choice!r} is not in the list. Refresh the node definitions (key R) and pick one.")
    kind, name = entry
    path = folders.path(kind, name)
    if path is None:
        raise NodeError(f"The model {choice!r} has gone. Refresh the node definitions (key R) and pick another.")
    return Source(kind, name, path)


@contextmanager
def called_by_name(*found: Source) -> Iterator[None]:
    """Lets refusals name files as they were picked: that says more than a path, and leaves room for the reason."""
    try:
        yield
    except NodeError as error:
        sentence = str(error)
        for source in found:
            sentence = sentence.replace(source.path, source.name)
        raise NodeError(sentence, error.code) from None


def _listed(folders: Folders) -> dict[str, tuple[str, str]]:
    """Label -> kind and name. A diffusion model in a subfolder `checkpoints` goes before a checkpoint of that name."""
    listed = {name: (DIFFUSION_MODELS, name) for name in folders.names(DIFFUSION_MODELS)}
    for name in folders.names(CHECKPOINTS):
        listed.setdefault(f"{CHECKPOINTS}/{name}", (CHECKPOINTS, name))
    return {label: entry for label, entry in listed.items() if label.lower().endswith(_SUFFIXES)}


def _slashes(name: str) -> str:
    return name.replace("\\", "/")
