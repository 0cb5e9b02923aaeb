"""Runs that are asked to stop at random moments: they end within a second, and nothing is left."""

import random
import time

from support.faults import Faults

from .conftest import Length
from .world import World, interrupt


def test_cancelled_at_random_moments(world: World, rng: random.Random, length: Length) -> None:
    slowest, done = 0.0, 0
    for number in range(length.cancels):
        options = ["--header", "official"] if number % 2 else []
        process = world.start(*options, "--max-rate", rng.choice(["3", "30", "300"]))
        time.sleep(rng.uniform(0, 0.5))
        ended = interrupt(process)
        slowest = max(slowest, ended.seconds)
        # Before it listens to signals, one ends it; before that nothing is written.
        assert ended.status in (0, 130, -2), ended
        if ended.status == 0:
            done += 1
            world.target.unlink(missing_ok=True)
        world.assert_clean()
        assert ended.seconds < 1, ended
    print(f"slowest of {length.cancels}: {slowest:.3f} s; {done} were done before")


def test_cancelled_while_a_read_stalls(world: World, faults: Faults, rng: random.Random, length: Length) -> None:
    """A drive that does not answer must not keep the user waiting."""
    world.run(environment=faults.environment())
    world.take_result()
    reads = faults.calls()["read"]
    for _ in range(3):
        stall = f"read:{rng.randrange(5, reads)}:{int(length.stall_seconds * 1000)}ms"
        process = world.start(environment=faults.environment(stall))
        deadline = time.monotonic() + 20
        while not faults.have_fired():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)
        ended = interrupt(process)
        assert ended.status == 130, ended
        assert ended.seconds < 1, ended
        world.assert_clean()
