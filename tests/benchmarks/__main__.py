"""`python -m tests.benchmarks`: CPU time and peak memory of `report` on transformers of 6 to 96 layers, and of others.

The runs are captured once into `build/bench`. CPU time is that of whole processes, start-up included, best of three.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.benchmarks.measure import Cost, measure
from tests.benchmarks.rivals import report, rivals
from tests.benchmarks.runs import DumpFiles, captured, dump_files

LAYERS = (6, 12, 24, 48, 96)
COMPARED = 48


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("run", nargs="?", type=Path, help="compare on this debug run instead of one of 48 layers")
    parser.add_argument("--layers", type=int, nargs="*", default=LAYERS, help="sizes to measure growth over")
    options = parser.parse_args()
    compare(dump_files(options.run or captured(COMPARED)))
    if options.run is None:
        growth(options.layers)
    return 0


def compare(files: DumpFiles) -> None:
    """`report` beside the others on the same run."""
    size = sum(path.stat().st_size for path in files.artifacts) / 2**20
    print(f"\n{files.run}: {size:.1f} MiB of artifacts, {files.log_bytes / 2**20:.1f} MiB of trace log")
    ours = measure(report(files))
    show("report --json", ours, None)
    for name, command in rivals(files):
        if isinstance(command, str):
            print(f"  {name:42} {command}")
        else:
            show(name, measure(command), ours)


def show(name: str, cost: Cost, ours: Cost | None) -> None:
    ratio = "" if ours is None else f"   report takes {ours.seconds / cost.seconds:6.2f} x"
    print(f"  {name:42} {cost.seconds:7.2f} s {cost.megabytes:8.0f} MiB{ratio}")


def growth(layers: tuple[int, ...]) -> None:
    """CPU time against layers; without the fixed cost of starting, doubling the layers should double it."""
    start = measure([sys.executable, "-c", "import cli, analyzer.load, analyzer.analyze, analyzer.views.json"])
    print(f"\ngrowth with layers (start-up alone: {start.seconds:.2f} s)")
    before: float | None = None
    for count in layers:
        cost = measure(report(dump_files(captured(count))))
        work = cost.seconds - start.seconds
        factor = "" if before is None else f"   x {work / before:.2f} of the line above, start-up left out"
        print(f"  {count:3} layers {cost.seconds:7.2f} s {cost.megabytes:8.0f} MiB{factor}")
        before = work


if __name__ == "__main__":
    sys.exit(main())
