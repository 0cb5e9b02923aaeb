"""Stands in for the native part of DFloat11 Compress where there is none: `REASON` says what is missing."""

import platform
import sys
import sysconfig

__version__ = "@VERSION@"
NATIVE = False

_PYTHON = f"{platform.python_implementation()} {platform.python_version()}"
# It tells what the system's name leaves open: another C library, a Python without its global lock.
_SUFFIX = (sysconfig.get_config_var("EXT_SUFFIX") or "").strip(".")
_PLACE = f"{platform.system()} {platform.machine()}, {_PYTHON} ({_SUFFIX})"
REASON = (
    f"DFloat11 Compress {__version__} has no ready-made native part for {_PLACE}; "
    "@REPOSITORY@#install says how to build it."
)


def main() -> int:
    """What the `df11` command does here; its exit code says that something is missing."""
    sys.stderr.write(f"df11: {REASON}\n")
    return 1
