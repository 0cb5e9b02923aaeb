"""What `df11 compress` has the disk read, verification included: the source once, also where a unit is read twice."""

from pathlib import Path

import pytest

from support.disks import forget

from .conftest import GB, Bench
from .sources import LARGEST, write_source

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="device reads are read from /proc")


@pytest.mark.parametrize("io", ["sequential", "parallel", "auto"])
@pytest.mark.parametrize("header", ["self-describing", "official"])
def test_a_cold_source_is_read_from_the_device_once(bench: Bench, header: str, io: str) -> None:
    source = bench.folder / "cold.safetensors"
    if not source.exists():
        write_source(source, bench.folder / "piece.bin", 1 * GB)
    forget(source)
    report = bench.run(source, "--header", header, "--io", io, "--max-memory", "256MiB").report
    size = source.stat().st_size
    units = {unit["weights"]: unit["reads"] for unit in report["units"]}
    assert units[LARGEST] == 2
    assert report["bytes_read"] <= 2 * size
    assert report["io"] == io or io == "auto"
    read = report["device_bytes_read"]
    if not read:
        pytest.skip("this file system has no device")
    print(f"{read / size:.3f} of the source from the device, {report['bytes_read'] / size:.3f} by read calls")
    assert 0.95 * size <= read <= 1.05 * size
