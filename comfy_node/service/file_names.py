"""Rules for the name that a user gives to the result."""

from __future__ import annotations

import os

from ..errors import NodeError

SUFFIX = ".safetensors"
# The partial file beside the target has the longest name: most file systems allow 255 bytes.
_LONGEST = 255 - len(".partial")
# Refused on every system, so that a workflow means the same everywhere.
_FORBIDDEN = frozenset('<>:"/\\|?*')
_RESERVED = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"]
    + [device + digit for device in ("COM", "LPT") for digit in "0123456789\u00b9\u00b2\u00b3"]
)


def result_name(wanted: str, source_name: str) -> str:
    """The name of a DF11 file: `wanted` with its suffix, or `<stem of the source>-DF11.safetensors` if it is blank.

    Raises NodeError for a name that is not a plain file name on every system.
    """
    stem = os.path.splitext(os.path.basename(source_name))[0]
    return file_name(wanted, f"{stem}-DF11{SUFFIX}")


def file_name(wanted: str, otherwise: str) -> str:
    """`wanted` with its suffix, or `otherwise` if it is blank. Raises NodeError like `result_name`."""
    if not wanted.strip():
        return otherwise
    fault = _fault(wanted)
    if fault:
        raise NodeError(f"The output name {wanted!r} {fault}. Give a plain file name, or leave it empty.")
    return wanted if wanted.lower().endswith(SUFFIX) else wanted + SUFFIX


def _fault(name: str) -> str | None:
    if any(ord(c) < 32 or c in _FORBIDDEN for c in name):
        return 'has a character that file names cannot have: / \\ : * ? " < > | or a control character'
    if name.startswith("."):
        return "starts with a dot"
    if name != name.strip() or name.endswith("."):
        return "starts or ends with a space, or ends with a dot"
    if name.split(".")[0].rstrip().upper() in _RESERVED:
        return "is reserved on Windows"
    try:
        length = len((name + SUFFIX).encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if length > _LONGEST:
        return f"is too long: {length} bytes instead of at most {_LONGEST}"
    return None
