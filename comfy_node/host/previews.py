"""Pictures that are shown on a node until the server ends."""

from __future__ import annotations

import os
import uuid

import folder_paths


def show(png: bytes | None) -> dict[str, list[dict[str, str]]]:
    """Puts a picture where the browser gets previews from; returns what a node's `ui` needs to show it.

    Empty without a picture, and where it cannot be written: a full disk must not cost a finished run.
    """
    if png is None:
        return {}
    folder = folder_paths.get_temp_directory()
    name = f"DFloat11_{uuid.uuid4().hex}.png"
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(png)
    except OSError:
        return {}
    return {"images": [{"filename": name, "subfolder": "", "type": "temp"}]}
