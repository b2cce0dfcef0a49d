"""Did two runs generate the same code? Asked of a measured and an audited run, and of an arm and its baseline."""

from __future__ import annotations

from pathlib import Path

from analyzer.compare.pairing import pair_graphs
from analyzer.compare.sameness import same_code
from analyzer.errors import AnalyzerError
from analyzer.load import load_run
from analyzer.model import CompiledGraph


def other_code(one: Path, other: Path) -> str | None:
    """Why the two runs did not generate the same code; None when they did."""
    try:
        pairs = pair_graphs(load_run(one).graphs, load_run(other).graphs, versions=False)
        differing = [pair.name for pair in pairs if not _same(pair.base, pair.ablated)]
    except AnalyzerError as error:
        return f"a run cannot be read: {error}"
    if not differing:
        return None
    return f"its code is not the code that was audited: {', '.join(differing)}"


def _same(one: CompiledGraph | None, other: CompiledGraph | None) -> bool:
    return bool(one and other and one.code and other.code) and same_code(one.code, other.code)  # type: ignore[union-attr, arg-type]
