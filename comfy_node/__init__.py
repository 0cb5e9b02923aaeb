"""The ComfyUI side of DFloat11 Compress: nodes -> service -> native, and `host` for everything that is ComfyUI's."""

from pathlib import Path

PACK_FOLDER = Path(__file__).parent.parent
