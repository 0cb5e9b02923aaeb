"""ComfyUI's model folders."""

from __future__ import annotations

import folder_paths


def names(kind: str) -> list[str]:
    """What a loader's list shows for a kind of model: names relative to its roots, with the system's separators."""
    return list(folder_paths.get_filename_list(kind))


def path(kind: str, name: str) -> str | None:
    """Where a listed file lies; the link's own path for a link. None if there is no such file."""
    found: str | None = folder_paths.get_full_path(kind, name)
    return found


def roots(kind: str) -> list[str]:
    """The folders in which a kind of model is looked for, first come first served."""
    return list(folder_paths.get_folder_paths(kind))


def output() -> str:
    """The folder for what ComfyUI makes."""
    return str(folder_paths.get_output_directory())


def user() -> str:
    """The folder for the user's own settings."""
    return str(folder_paths.get_user_directory())
