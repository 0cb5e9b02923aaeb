"""Disks that are cold or slow."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup/blkio")


def forget(path: Path) -> None:
    """Take a file out of the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def throttled(folder: Path, bytes_a_second: int) -> Iterator[Path]:
    """A group of processes (cgroup version 1) for which the disk of `folder` is slow in both directions.

    Raises OSError where there are no such groups, or the folder lies on no disk.
    """
    number = os.stat(folder).st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve(strict=True)
    if (device / "partition").exists():
        device = device.parent
    rule = f"{(device / 'dev').read_text().strip()} {bytes_a_second}"
    group = Path(tempfile.mkdtemp(prefix="df11-test-", dir=CGROUPS))
    try:
        for direction in ("read", "write"):
            (group / f"blkio.throttle.{direction}_bps_device").write_text(rule)
        yield group
    finally:
        group.rmdir()


def enter(group: Path) -> None:
    """Puts this process into a group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
