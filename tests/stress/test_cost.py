"""What the journal costs, and what going on saves."""

import statistics
import time
from pathlib import Path

import pytest

from support.faults import Faults

from .conftest import Length
from .world import World


def test_the_cost_of_a_journal_and_the_gain_of_going_on(df11: Path, scratch: Path, length: Length) -> None:
    if not length.cost_runs:
        pytest.skip("SKIP times mean nothing beside other tests: only with STRESS_FULL=1")
    folder = scratch / "cost"
    folder.mkdir()
    world = World(df11, folder, scale=length.cost_scale)
    faults = Faults.build(scratch, folder)
    undisturbed = world.undisturbed()
    whole, resumed, shares, journals = [], [], [], []
    for _ in range(length.cost_runs):
        whole.append(world.run().report["seconds"])
        assert world.take_result() == undisturbed
        seconds = world.run(environment=faults.environment()).report["seconds"]
        journals.append(faults.journal_seconds() / seconds)
        assert world.take_result() == undisturbed
        process = world.start()
        while not world.partial.exists() or world.partial.stat().st_blocks * 512 < len(undisturbed) / 2:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
        process.communicate()
        report = world.run().report
        resumed.append(report["seconds"])
        shares.append(report["resumed_bytes"] / len(undisturbed))
        assert world.take_result() == undisturbed
    full, rest, share = (statistics.median(times) for times in (whole, resumed, shares))
    print(
        f"{len(undisturbed) / 1e6:.0f} MB: whole run {full:.2f} s; with {100 * share:.0f} % there already "
        f"{rest:.2f} s, {100 * rest / full:.0f} %; journal {100 * max(journals):.2f} % of a run at most"
    )
    assert share > 0.2
    assert statistics.median(journals) < 0.01
