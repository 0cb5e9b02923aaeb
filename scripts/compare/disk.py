"""Whole runs on a disk, beside copying the source and beside the same reads and writes without any work."""

import os
from pathlib import Path

from compare.report import Ratio, Section, number
from compare.runs import DF11, IO_TWIN, Run, Turns, median, paired, rotated, run, tell
from compare.sources import PIECE, forget, make_piece, write_architecture, write_checkpoint

WARM = ("df11, verify off", "df11, verify full", "cp and sync", "I/O twin")
COLD = ("df11, verify off", "df11, verify full", "I/O twin")


def measure(work: Path, gigabytes: float, pairs: int, threads: int, turns: Turns) -> Section:
    """`work` lies on the disk in question and has room for three times the source."""
    write_architecture(work)
    piece, source, target = make_piece(work), work / "source.safetensors", work / "result.safetensors"
    units = max(1, round(gigabytes * 1e9 / (2 * PIECE)))
    write_checkpoint(source, piece, [PIECE] * units)
    piece.unlink()
    run(*command("df11, verify off", source, target, threads, 0))
    bytes_written = target.stat().st_size
    target.unlink()
    section = Section(
        "Whole runs on a disk",
        ["", "source in memory, s", "source on disk, s", "of it read from disk"],
        notes=[
            f"{source.stat().st_size / 1e9:.2f} GB -> {bytes_written / 1e9:.2f} GB, {units} units, {threads} threads, "
            f"median of {pairs} rounds; every run ends with its result flushed.",
        ],
    )
    found: dict[tuple[str, bool], list[Run]] = {}
    for cold, names in [(False, WARM), (True, COLD)]:
        for index in range(pairs):
            with turns.turn():
                os.sync()
                for name in rotated(names, index):
                    prepare(source, cold)
                    done = run(*command(name, source, target, threads, bytes_written))
                    found.setdefault((name, cold), []).append(done)
                    tell(f"{'cold' if cold else 'warm'} {name}: {done.seconds:.2f} s")
                    target.unlink()
    for name in WARM:
        warm, cold_runs = found[name, False], found.get((name, True), [])
        share = median(done.disk_bytes for done in cold_runs) / source.stat().st_size if cold_runs else 0
        section.rows.append([name, spread(warm), spread(cold_runs), f"{share:.0%}" if cold_runs else ""])

    def ratio(ours: str, theirs: str, cold: bool) -> float:
        one, other = found[ours, cold], found[theirs, cold]
        return paired([done.seconds for done in one], [done.seconds for done in other])

    off, full, copy, twin = WARM
    section.ratios = [
        Ratio("verify off / cp and sync, in memory", ratio(off, copy, False), at_most=1.0),
        Ratio("verify full / cp and sync, in memory", ratio(full, copy, False), at_most=1.6),
        Ratio("verify off / I/O twin, from disk", ratio(off, twin, True), at_most=1.15),
    ]
    source.unlink()
    return section


def command(name: str, source: Path, target: Path, threads: int, bytes_written: int) -> list[object]:
    if name == "I/O twin":
        return [IO_TWIN, source, target, bytes_written, threads]
    if name == "cp and sync":
        return ["sh", "-c", 'cp --reflink=never "$1" "$2" && sync "$2"', "sh", source, target]
    options = ["--architectures", source.parent, "--threads", threads, "-o", target]
    return [DF11, "compress", source, *options, "--verify", name.split()[-1]]


def prepare(source: Path, cold: bool) -> None:
    """Put the source into memory, or out of it. What earlier runs wrote is flushed first."""
    os.sync()
    if cold:
        return forget(source)
    with source.open("rb") as file:
        while file.read(1 << 22):
            pass


def spread(runs: list[Run]) -> str:
    seconds = [done.seconds for done in runs]
    return f"{number(median(seconds))} ({number(min(seconds))} to {number(max(seconds))})" if seconds else ""
