"""Our rates and those of others, on every distribution, with as many threads."""

import json
import sys
from pathlib import Path

from compare.report import Ratio, Section, number
from compare.runs import DF11, PEERS_PYTHON, Turns, Worker, median, paired, rates, rotated, run, start_rates, tell
from compare.sources import DISTRIBUTIONS, write_architecture, write_checkpoint, write_weights

HERE = Path(__file__).resolve().parent
# How long one rate of ours in memory is measured.
SECONDS = 0.4
NAMES = ("ours, memory", "ours, file", "zipnn", "lmzip, memory", "lmzip, file", "zstd -1")
# What a peer's process is called by.
PEERS = {"zipnn": "zipnn", "lmzip, memory": "lmzip-memory", "lmzip, file": "lmzip", "zstd -1": "zstd"}
# Weights that the official encoder gets: it takes a second for one or two million.
SAMPLE = 2 << 20
UNITS = 8


def measure(work: Path, weights: int, rounds: int, turns: Turns) -> Section:
    """`work` lies in memory; `weights` are those of one checkpoint."""
    section = Section(
        "Other compressors, same weights, same threads",
        ["weights", "threads", *NAMES, "official", "memory / zipnn", "memory / lmzip", "file / lmzip"],
        notes=[
            f"Million weights a second, {weights:,} weights, median of {rounds} rounds. From memory to memory: ours, "
            f"zipnn, lmzip's encoder, zstd, and the official encoder with {SAMPLE:,} weights. From file to file in "
            f"memory: ours, not verifying, a checkpoint of {UNITS} units, and lmzip; both without the start of their "
            "process.",
        ],
    )
    write_architecture(work)
    raw, checkpoint, sample = work / "weights.bin", work / "weights.safetensors", work / "sample.bin"
    peers = {
        (name, threads): Worker(PEERS_PYTHON, HERE / "peer.py", peer, threads)
        for name, peer in PEERS.items()
        for threads in (1, 2)
    }
    official = Worker(sys.executable, HERE / "official.py")
    ratios: dict[str, list[float]] = {}
    for name, draw in DISTRIBUTIONS.items():
        write_weights(raw, draw, weights)
        write_checkpoint(checkpoint, raw, [weights // UNITS] * UNITS)
        sample.write_bytes(raw.read_bytes()[: 2 * SAMPLE])
        with turns.turn():
            seconds = official.ask(sample)["seconds"]
            ours = rates(start_rates(sample, 1, SECONDS))["compress_weights_per_second"]
            reference = SAMPLE / seconds
        for threads in (1, 2):
            found: dict[str, list[float]] = {tool: [] for tool in NAMES}
            for index in range(rounds):
                with turns.turn():
                    for tool in rotated(NAMES, index):
                        found[tool].append(rate(tool, threads, peers, raw, checkpoint))
                        tell(f"{name}, {threads} threads, {tool}: {found[tool][-1] / 1e6:.0f} million weights/s")
            figures = [median(found[tool]) / 1e6 for tool in NAMES]
            pairs = {
                "memory / zipnn": paired(found["ours, memory"], found["zipnn"]),
                "memory / lmzip": paired(found["ours, memory"], found["lmzip, memory"]),
                "file / lmzip": paired(found["ours, file"], found["lmzip, file"]),
            }
            figures += [reference / 1e6, *pairs.values()]
            section.rows.append([name, str(threads), *map(number, figures)])
            for pair, value in pairs.items():
                title = f"ours, {pair}, {threads} thread{'s' * (threads > 1)}, worst distribution"
                ratios.setdefault(title, []).append(value)
        ratios.setdefault("ours, memory / official, 1 thread, worst distribution", []).append(ours / reference)
    section.ratios = [
        Ratio(name, min(values), at_least=300 if "official" in name else 3) for name, values in sorted(ratios.items())
    ]
    for worker in [*peers.values(), official]:
        worker.end()
    return section


def rate(tool: str, threads: int, peers: dict[tuple[str, int], Worker], raw: Path, checkpoint: Path) -> float:
    """Weights a second of one run."""
    weights = raw.stat().st_size / 2
    if tool == "ours, memory":
        return rates(start_rates(raw, threads, SECONDS))["compress_weights_per_second"]
    if tool == "ours, file":
        target = checkpoint.with_name("ours.safetensors")
        options = [
            "--json",
            "--architectures",
            checkpoint.parent,
            "--verify",
            "off",
            "--threads",
            threads,
            "-o",
            target,
        ]
        report = json.loads(run(DF11, "compress", checkpoint, *options).output)
        target.unlink()
        return float(weights / report["seconds"])
    # lmzip must see from the header that these are BF16 weights.
    answer = peers[tool, threads].ask(checkpoint if tool.startswith("lmzip") else raw)
    return float(weights / answer["seconds"])
