"""Runs that are asked to stop at random moments: they end within a second, and nothing is left."""

import random
import time

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
