"""Everything at once, for as long as there is time: kills, faults, stops, damaged and missing files.

What ends well is right, and nothing else has the name.
"""

import errno
import random
import time

from support.faults import Faults

from .conftest import Length
from .world import SOURCE, TARGET, World, interrupt

KINDS = ("open", "read", "read", "write", "write", "sync", "truncate", "link", "unlink", "map")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EINTR, "short", "30ms")


def random_rules(rng: random.Random) -> str:
    rules = [
        f"{rng.choice(KINDS)}:{round(10 ** rng.uniform(0, 2.6))}:{rng.choice(ERRORS)}" for _ in range(rng.randrange(3))
    ]
    return ";".join(rules)


def damage(world: World, rng: random.Random) -> str:
    """Does something to what a run has left."""
    victim = rng.choice([world.partial, world.journal])
    if not victim.exists() or victim.stat().st_size < 20:
        return "none"
    kind = rng.choice(["flip", "cut", "zeros", "gone", "none", "none"])
    size = victim.stat().st_size
    with victim.open("r+b") as file:
        # A marker that is gone is somebody else's file.
        file.seek(rng.randrange(16, size))
        if kind == "flip":
            file.write(bytes([rng.randrange(256)]))
        elif kind == "cut":
            file.truncate()
        elif kind == "zeros":
            file.write(bytes(4096))
    if kind == "gone":
        victim.unlink()
    return f"{kind} {victim.suffix}"


def test_mixed_faults(world: World, faults: Faults, rng: random.Random, length: Length) -> None:
    options = rng.choice([(), ("--header", "official"), ("--keep-uncompressed",)])
    undisturbed = world.undisturbed(*options)
    deadline = time.monotonic() + length.mixed_seconds
    story: list[str] = []
    runs = finished = 0
    while time.monotonic() < deadline:
        runs += 1
        rules, end = random_rules(rng), rng.choice(["kill", "stop", "wait", "wait"])
        rate = rng.choice([("--max-rate", "40"), ()])
        process = world.start(*options, *rate, environment=faults.environment(rules))
        if end != "wait":
            time.sleep(rng.uniform(0, 0.4))
            if end == "kill":
                process.kill()
            else:
                interrupt(process)
        try:
            output, errors = process.communicate(timeout=60) if end != "stop" else ("", "")
        finally:
            process.kill()
        story.append(f"{rules or 'none'}, {end}: {process.returncode}")
        assert "panic" not in errors, (story, errors)
        assert "E_INTERNAL" not in output, (story, output)
        world.assert_source_untouched()
        if world.target.exists():
            assert world.target.read_bytes() == undisturbed, story
            world.run(*options).report  # noqa: B018
            assert world.files() == {SOURCE, TARGET, "toy.toml"}, story
            world.target.unlink()
            story.clear()
            finished += 1
        else:
            story.append(damage(world, rng))
        if not world.partial.exists() or world.partial.stat().st_size == 0:
            continue
        if process.returncode == 6:
            # Damage made it somebody else's.
            world.partial.unlink()
            world.journal.unlink(missing_ok=True)
    print(f"{runs} runs, {finished} files")
    world.partial.unlink(missing_ok=True)
    world.journal.unlink(missing_ok=True)
    world.run(*options).report  # noqa: B018
    assert world.take_result() == undisturbed
