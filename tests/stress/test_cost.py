"""What the journal costs, and what going on saves."""

import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from support.faults import Faults
from support.tensors import bf16, write_safetensors
from support.toy import toy_architecture

from .conftest import Length
from .world import World

# As published models have them: many units, of which the one in work when a run is killed is a small part.
UNITS = 50


class ManyUnits(World):
    def make_source(self, scale: float) -> None:
        (self.folder / "toy.toml").write_text(toy_architecture("one"))
        values = np.random.default_rng(5).standard_normal(int(scale * 1_000_000), np.float32) * np.float32(0.02)
        write_safetensors(self.source, {f"one.{unit}.weight": bf16(values) for unit in range(UNITS)})


def test_the_cost_of_a_journal_and_the_gain_of_going_on(df11: Path, scratch: Path, length: Length) -> None:
    if not length.cost_runs:
        pytest.skip("SKIP times mean nothing beside other tests: only with STRESS_FULL=1")
    folder = scratch / "cost"
    folder.mkdir()
    world = ManyUnits(df11, folder, scale=length.cost_scale)
    faults = Faults.build(scratch, folder)
    undisturbed = world.undisturbed()
    whole, resumed, shares, journals = [], [], [], []
    for _ in range(length.cost_runs):
        whole.append(world.run().report["seconds"])
        world.target.unlink()
        seconds = world.run(environment=faults.environment()).report["seconds"]
        journals.append(faults.journal_seconds() / seconds)
        world.target.unlink()
        process = world.start()
        while not world.partial.exists() or world.partial.stat().st_size < len(undisturbed) * 0.52:
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
        f"{rest:.2f} s, {100 * rest / full:.0f} %; the journal's writes and flushes "
        f"{100 * statistics.median(journals):.2f} % of a run, {100 * max(journals):.2f} % at most"
    )
    assert 0.4 < share < 0.6
    assert rest < full * 0.9
    assert statistics.median(journals) < 0.01
