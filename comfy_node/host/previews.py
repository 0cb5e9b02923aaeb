"""Pictures that are shown on a node until the server ends."""

from __future__ import annotations

import os
import uuid

import folder_paths


def show(png: bytes) -> dict[str, str]:
    """Puts a picture where the browser gets previews from; returns the entry for a node's `ui.images`."""
    folder = folder_paths.get_temp_directory()
    os.makedirs(folder, exist_ok=True)
    name = f"DFloat11_{uuid.uuid4().hex}.png"
    with open(os.path.join(folder, name), "wb") as file:
        file.write(png)
    return {"filename": name, "subfolder": "", "type": "temp"}
