"""Measures this program beside others and beside plain copying: same files, one run, tables of ratios and their aims.

Usage: make bench, which builds what this needs and runs it in the environment `oracle`; or, once that is there,
.envs/oracle/bin/python scripts/bench.py with the options below. About eight minutes on two cores; it takes 8 GB on the
disk and 3 GB in memory while it runs.
"""

import argparse
import tempfile
from pathlib import Path

from compare import disk, machine, peers, scaling
from compare.runs import ROOT, Turns

SECTIONS = ("peers", "disk", "scaling")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="a part; may be given more than once")
    parser.add_argument("--folder", type=Path, default=ROOT / "target", help="a folder on the disk to measure")
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a folder in memory")
    parser.add_argument("--weights", type=int, default=64, help="million weights (2^20) of a distribution")
    parser.add_argument("--gigabytes", type=float, default=2.28, help="size of the source on disk")
    parser.add_argument("--large-unit", type=int, default=340_000_000, help="weights of the large unit")
    parser.add_argument("--pairs", type=int, default=7, help="rounds on disk and of scaling")
    parser.add_argument("--rounds", type=int, default=3, help="rounds with other compressors")
    parser.add_argument("--threads", type=int, default=2, help="threads of the runs on disk")
    parser.add_argument("--lock", type=Path, help="a file to lock (flock) while it measures, on a shared machine")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    options.folder.mkdir(exist_ok=True)
    print(machine.describe(options.folder), flush=True)
    wanted = options.only or SECTIONS
    weights = options.weights << 20
    turns = Turns(options.lock)
    with (
        tempfile.TemporaryDirectory(dir=options.folder, prefix="bench-") as on_disk,
        tempfile.TemporaryDirectory(dir=options.memory, prefix="bench-") as in_memory,
    ):
        disk_folder, memory_folder = Path(on_disk), Path(in_memory)
        if "peers" in wanted:
            peers.measure(memory_folder, weights, options.rounds, turns).show()
            turns.let_go()
        if "disk" in wanted:
            disk.measure(disk_folder, options.gigabytes, options.pairs, options.threads, turns).show()
            turns.let_go()
        if "scaling" in wanted:
            for section in scaling.measure(memory_folder, weights, options.large_unit, options.pairs, turns):
                section.show()


if __name__ == "__main__":
    main()
