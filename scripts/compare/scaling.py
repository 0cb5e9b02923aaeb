"""What a second thread brings, and whether the size of a unit matters."""

from pathlib import Path

from compare.report import Ratio, Section, number
from compare.runs import DF11, Turns, median, paired, rates, run, start_rates, tell
from compare.sources import DISTRIBUTIONS, write_architecture, write_checkpoint, write_repeated, write_weights

# How long each rate in memory is measured.
SECONDS = 1.0
RATES = {"compress": "compress_weights_per_second", "verify": "verify_weights_per_second"}


def measure(work: Path, weights: int, large_unit: int, pairs: int, turns: Turns) -> list[Section]:
    """`work` lies in memory."""
    write_architecture(work)
    raw = work / "weights.bin"
    write_weights(raw, next(iter(DISTRIBUTIONS.values())), weights)
    return [
        threads(raw, weights, pairs, turns),
        unit_sizes_in_memory(work, raw, large_unit, pairs, turns),
        unit_sizes(work, raw, large_unit, pairs, turns),
    ]


def threads(raw: Path, weights: int, pairs: int, turns: Turns) -> Section:
    section = Section(
        "Two threads, and two processes of one thread at the same time",
        ["", "two processes", "two threads"],
        notes=[f"Million weights a second, {weights:,} weights in memory, median of {pairs} rounds."],
    )
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in RATES}
    for _ in range(pairs):
        with turns.turn():
            # Both count, encode and check for the same time, so they are in step but for their starts.
            together = [rates(process) for process in [start_rates(raw, 1, SECONDS) for _ in range(2)]]
            alone = rates(start_rates(raw, 2, SECONDS))
        for name, key in RATES.items():
            found[name][0].append(sum(one[key] for one in together))
            found[name][1].append(alone[key])
            tell(f"{name}: two threads {alone[key] / 1e6:.0f}, two processes {found[name][0][-1] / 1e6:.0f}")
    for name, (processes, one) in found.items():
        section.rows.append([name, number(median(processes) / 1e6), number(median(one) / 1e6)])
        section.ratios.append(Ratio(f"two threads / two processes, {name}", paired(one, processes), at_least=0.92))
    return section


def unit_sizes_in_memory(work: Path, raw: Path, large_unit: int, pairs: int, turns: Turns) -> Section:
    section = Section(
        "One large unit, and 64 that hold as much, in memory",
        ["units", "compress"],
        notes=[
            f"Million weights a second, {large_unit:,} weights in memory, 2 threads, median of {pairs} rounds.",
        ],
    )
    sizes = {"1": large_unit, "64": large_unit // 64}
    found: dict[str, list[float]] = {name: [] for name in sizes}
    all_units = work / "all.bin"
    write_repeated(all_units, raw, 2 * large_unit)
    for _ in range(pairs):
        with turns.turn():
            for name, size in sizes.items():
                found[name].append(rates(start_rates(all_units, 2, SECONDS, size))[RATES["compress"]])
                tell(f"{name} units: {found[name][-1] / 1e6:.0f} million weights/s")
    all_units.unlink()
    for name in sizes:
        section.rows.append([name, number(median(found[name]) / 1e6)])
    section.ratios.append(Ratio("one unit / 64 units", paired(found["1"], found["64"]), at_least=0.95))
    return section


def unit_sizes(work: Path, raw: Path, large_unit: int, pairs: int, turns: Turns) -> Section:
    section = Section(
        "One large unit, and 64 that hold as much",
        ["units", "s"],
        notes=[
            f"{large_unit:,} weights, file to file in memory, 2 threads, verify off, median of {pairs} rounds.",
        ],
    )
    small = large_unit // 64
    sources = {"1": [large_unit], "64": [small] * 63 + [large_unit - 63 * small]}
    for name, units in sources.items():
        write_checkpoint(work / f"{name}.safetensors", raw, units)
    found: dict[str, list[float]] = {name: [] for name in sources}
    target = work / "result.safetensors"
    for _ in range(pairs):
        with turns.turn():
            for name in sources:
                options = ["--architectures", work, "--threads", 2, "--verify", "off", "-o", target]
                found[name].append(run(DF11, "compress", work / f"{name}.safetensors", *options).seconds)
                tell(f"{name} units: {found[name][-1]:.2f} s")
                target.unlink()
    for name, seconds in found.items():
        section.rows.append([name, number(median(seconds))])
    section.ratios.append(Ratio("one unit / 64 units, seconds", paired(found["1"], found["64"]), at_most=1.05))
    return section
