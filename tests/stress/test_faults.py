"""Every file operation of a run fails once, or comes back short.

The run ends with a named error or well, and the next one ends well.
"""

import errno
import random
from pathlib import Path

import pytest

from support.faults import Faults

from .conftest import Length
from .folder_world import FolderWorld
from .world import Ended, World

ERRORS = {
    "open": [errno.EACCES, errno.EMFILE],
    "read": [errno.EIO, errno.EINTR, "short"],
    "write": [errno.EIO, errno.ENOSPC, errno.EINTR, "short"],
    "sync": [errno.EIO, errno.ENOSPC],
    "truncate": [errno.EIO],
    "rename": [errno.EACCES],
    "link": [errno.EPERM, errno.EIO],
    "unlink": [errno.EACCES],
    "map": [errno.ENOMEM],
}
# What a program survives by trying again, or by another way.
HARMLESS = {errno.EINTR, "short"}
CODES = {"E_READ", "E_WRITE", "E_NO_SPACE", "E_NO_MEMORY", "E_DEFINITION", "E_PARTIAL_FOREIGN"}


def assert_told(ended: Ended, world: World) -> None:
    """The error says what failed, and of which file."""
    error = ended.error
    assert error["code"] in CODES, error
    assert error["message"] and error["hint"], error
    assert error["code"] == "E_NO_MEMORY" or error["path"].startswith(str(world.folder)), error
    assert "panic" not in ended.errors, ended.errors


MODES = [(), ("--header", "official"), ("--if-exists", "replace")]


@pytest.mark.parametrize("options", MODES, ids=" ".join)
def test_every_call_fails_once(
    world: World, faults: Faults, rng: random.Random, length: Length, options: tuple[str, ...]
) -> None:
    fail_often(world, faults, rng, length.fault_share, options)


@pytest.mark.parametrize("options", MODES, ids=" ".join)
def test_every_call_fails_once_for_a_folder(
    folder_world: FolderWorld, scratch: Path, rng: random.Random, length: Length, options: tuple[str, ...]
) -> None:
    fail_often(folder_world, Faults.build(scratch, folder_world.folder), rng, length.fault_share, options)


def test_a_failed_flush_ends_the_run(df11: Path, scratch: Path) -> None:
    """Then, and not when everything else is done."""
    folder = scratch / "large"
    folder.mkdir()
    world, faults = World(df11, folder, scale=4), Faults.build(scratch, folder)
    braked = ("--max-rate", "10")
    whole = world.run(*braked)
    assert whole.report
    world.take_result()
    ended = world.run(*braked, environment=faults.environment(f"sync:1:{errno.EIO}"))
    assert ended.error["code"] == "E_WRITE", ended
    assert ended.seconds < 0.6 * whole.seconds, (ended.seconds, whole.seconds)


def test_what_could_not_be_removed_is_gone_on_with(
    folder_world: FolderWorld, scratch: Path, rng: random.Random
) -> None:
    """The disk is full, and nothing can be deleted: the folder stays marked as ours."""
    world, faults = folder_world, Faults.build(scratch, folder_world.folder)
    undisturbed = world.undisturbed()
    world.run(environment=faults.environment())
    world.take_result()
    writes = faults.calls()["write"]
    for _ in range(3):
        rules = f"write:{rng.randrange(writes // 2, writes)}:{errno.ENOSPC};unlink:1:{errno.EACCES}"
        ended = world.run(environment=faults.environment(rules))
        assert ended.error["code"] == "E_NO_SPACE", (rules, ended)
        assert world.partial.exists(), rules
        world.run().report  # noqa: B018
        assert world.take_result() == undisturbed, rules


def fail_often(world: World, faults: Faults, rng: random.Random, share: float, options: tuple[str, ...]) -> None:
    """Runs of which a call fails, that share of all there are; each is followed by one that ends well."""
    undisturbed = world.undisturbed(*options)
    world.run(*options, environment=faults.environment()).report  # noqa: B018
    assert world.take_result() == undisturbed
    rules = [
        f"{kind}:{number}:{what}"
        for kind, count in faults.calls().items()
        for number in range(1, count + 1)
        for what in ERRORS[kind]
    ]
    chosen = rng.sample(rules, max(10, round(len(rules) * share)))
    # Rare ones always.
    chosen += [rule for rule in rules if rule.split(":")[0] in ("rename", "link", "unlink", "truncate")]
    met = 0
    for rule in chosen:
        ended = world.run(*options, environment=faults.environment(rule))
        assert ended.status >= 0, (rule, ended)
        met += faults.have_fired()
        world.assert_source_untouched()
        if ended.status:
            assert_told(ended, world)
            assert not world.target.exists(), rule
            if ended.error["code"] == "E_NO_SPACE" and "sync" not in rule:
                world.assert_clean()
            ended = world.run(*options)
            assert ended.status == 0, (rule, ended)
        if rule.startswith("unlink"):
            # What could not be removed then is removed now.
            world.run(*options).report  # noqa: B018
        assert world.take_result() == undisturbed, rule
    print(f"{len(chosen)} of {len(rules)} faults, {met} met")
    assert met > len(chosen) // 2
