"""The machine that the figures are of."""

import datetime
import os
import platform
import re
from pathlib import Path


def describe(folder: Path) -> str:
    """One sentence: processor, cores, memory, disk, system, date."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    parts = [
        cpu[1] if cpu else platform.machine(),
        f"{len(os.sched_getaffinity(0))} cores",
        f"{memory:.0f} GiB of memory",
        disk(folder),
        f"Linux {platform.release()}",
        datetime.datetime.now(datetime.UTC).date().isoformat(),
    ]
    return ", ".join(parts)


def disk(folder: Path) -> str:
    """File system and kind of the disk that holds a folder."""
    mounts = [line.split()[:3] for line in Path("/proc/mounts").read_text().splitlines()]
    path = folder.resolve()
    holding = [mount for mount in mounts if path.is_relative_to(mount[1])]
    device, _, kind = max(holding, key=lambda mount: len(mount[1]))
    name = Path(device).resolve().name
    block = Path("/sys/class/block") / name
    if not block.exists():
        return kind
    # A virtual disk does not know what it is made of.
    if name.startswith(("vd", "xvd")):
        return f"{kind} on a virtual disk"
    whole = next(place for place in [block, block.resolve().parent] if (place / "queue").exists())
    spins = (whole / "queue" / "rotational").read_text().strip() == "1"
    return f"{kind} on a {'spinning' if spins else 'solid-state'} disk"
