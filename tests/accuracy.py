"""Measures attribution against the compiler: facts without our sidecar beside those that the sidecar recorded.

    python -m tests.accuracy RUN...            runs that `capture` made: figures and misses per level of evidence
    python -m tests.accuracy --table RUN...    the figures alone, as docs/accuracy.md shows them

A level leaves out everything better: `provenance` the sidecar, `bare` the provenance record and the trace log too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from analyzer.analyze import analyze
from analyzer.facts import BufferFact, GraphFacts, Storage
from analyzer.load import load_run
from analyzer.model import CompiledGraph

LEVELS = ("provenance", "bare")


def without(graph: CompiledGraph, level: str) -> CompiledGraph:
    """The graph with only the evidence of a level."""
    stripped = replace(graph, sidecar=None)
    return stripped if level == "provenance" else replace(stripped, provenance=None, trace=None)


def compare(exact: GraphFacts, said: GraphFacts, counts: Counter[str], misses: list[str] | None = None) -> None:
    """Adds one graph's agreement to the counts; `misses` collects the disagreements in words."""
    live = {node.name for node in exact.nodes if node.node.op == "call_function"}
    ours = {buffer.name: buffer for buffer in said.buffers}
    for buffer in exact.buffers:
        missing = BufferFact(buffer.name, buffer.operation, buffer.ir_class, reason="not known to exist")
        _compare_buffer(buffer, ours.get(buffer.name, missing), live, counts, misses)
    kernels = {group.name: group.kernel for group in said.groups}
    for group in exact.groups:
        if group.kernel is not None:
            counts["kernel"] += 1
            counts["kernel_right"] += kernels.get(group.name) == group.kernel
    computes = {kernel.name: set(kernel.fx_nodes) & live for kernel in said.kernels}
    for kernel in exact.kernels:
        if kernel.backend not in ("extern", "fallback"):
            _overlap("attribution", set(kernel.fx_nodes) & live, computes.get(kernel.name, set()), counts)


def _compare_buffer(
    buffer: BufferFact, mine: BufferFact, live: set[str], counts: Counter[str], misses: list[str] | None
) -> None:
    if buffer.fx_node is not None:
        counts["owner"] += 1
        kind = "right" if mine.fx_node == buffer.fx_node else "unknown" if mine.fx_node is None else "wrong"
        counts[f"owner_{kind}"] += 1
        if kind != "right" and misses is not None:
            misses.append(f"{buffer.name}: {buffer.fx_node}, said {mine.fx_node} ({mine.reason})")
    if buffer.ir_class == "ComputedBuffer":
        _overlap("origins", set(buffer.origins) & live, set(mine.origins) & live, counts)
    counts["removed"] += buffer.storage == Storage.REMOVED
    counts["removed_said"] += mine.storage == Storage.REMOVED
    counts["removed_both"] += buffer.storage == mine.storage == Storage.REMOVED


def _overlap(what: str, true: set[str], said: set[str], counts: Counter[str]) -> None:
    counts[what] += len(true)
    counts[f"{what}_said"] += len(said)
    counts[f"{what}_both"] += len(true & said)


def measure(runs: Iterable[Path], level: str, misses: list[str] | None = None) -> Counter[str]:
    """Agreement over all graphs of the runs that have a complete sidecar and no control flow."""
    counts: Counter[str] = Counter()
    for path in runs:
        for graph in load_run(path).graphs:
            if graph.sidecar is None or len(graph.sidecar.graphs) != 1 or graph.post is None:
                continue
            counts["graphs"] += 1
            compare(analyze(graph), analyze(without(graph, level)), counts, misses)
    return counts


def ratio(counts: Counter[str], part: str, whole: str) -> float:
    """A share; 1.0 of nothing."""
    return counts[part] / counts[whole] if counts[whole] else 1.0


def row(counts: Counter[str]) -> dict[str, float]:
    """The figures of one level, under the names that the README's table has."""
    return {
        "graphs": counts["graphs"],
        "owner right": ratio(counts, "owner_right", "owner"),
        "owner wrong": ratio(counts, "owner_wrong", "owner") if counts["owner"] else 0.0,
        "kernel right": ratio(counts, "kernel_right", "kernel"),
        "removed found": ratio(counts, "removed_both", "removed"),
        "removed invented": counts["removed_said"] - counts["removed_both"],
        "origins precision": ratio(counts, "origins_both", "origins_said"),
        "origins recall": ratio(counts, "origins_both", "origins"),
        "kernel → op precision": ratio(counts, "attribution_both", "attribution_said"),
        "kernel → op recall": ratio(counts, "attribution_both", "attribution"),
    }


def table(runs: list[Path]) -> str:
    """The figures of all levels as aligned text."""
    rows = {level: row(measure(runs, level)) for level in LEVELS}
    lines = [f"{'':24}" + "".join(f"{level:>12}" for level in LEVELS)]
    for figure in rows[LEVELS[0]]:
        values = (rows[level][figure] for level in LEVELS)
        cells = (f"{value:.4f}" if isinstance(value, float) else str(value) for value in values)
        lines.append(f"{figure:24}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    """Prints the figures, and what was missed."""
    runs = [Path(argument) for argument in sys.argv[1:] if argument != "--table"]
    if "--table" in sys.argv:
        print(table(runs))
        return
    for level in LEVELS:
        misses: list[str] = []
        print(level, {name: round(value, 4) for name, value in row(measure(runs, level, misses)).items()})
        print("\n".join(f"    {miss}" for miss in misses))


if __name__ == "__main__":
    main()
