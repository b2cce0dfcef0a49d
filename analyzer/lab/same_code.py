"""Did two runs generate the same code? Asked of a measured and an audited run, and of an arm and its baseline."""

from __future__ import annotations

from pathlib import Path

from analyzer.compare.pairing import pair_graphs
from analyzer.compare.sameness import same_code
from analyzer.errors import AnalyzerError
from analyzer.load import load_run
from analyzer.model import CompiledGraph

SCALAR = "one has vector instructions, the other none: torch's test for them fails on a very busy machine"


def other_code(one: Path, other: Path) -> str | None:
    """Why the two runs did not generate the same code; None when they did."""
    try:
        pairs = list(pair_graphs(load_run(one).graphs, load_run(other).graphs, versions=False))
        differing = [pair for pair in pairs if not _same(pair.base, pair.ablated)]
    except AnalyzerError as error:
        return f"a run cannot be read: {error}"
    if not differing:
        return None
    names = ", ".join(pair.name for pair in differing)
    why = f" ({SCALAR})" if any(_scalar_in_one(pair.base, pair.ablated) for pair in differing) else ""
    return f"other code in {names}{why}"


def _same(one: CompiledGraph | None, other: CompiledGraph | None) -> bool:
    return bool(one and other and one.code and other.code) and same_code(one.code, other.code)  # type: ignore[union-attr, arg-type]


def _scalar_in_one(one: CompiledGraph | None, other: CompiledGraph | None) -> bool:
    """Whether a kernel has at::vec in one run only (CppVecKernel of torch/_inductor/codegen/cpp.py)."""
    vectorized, others = _vectorized(one), _vectorized(other)
    return any(vectorized[name] != others[name] for name in vectorized.keys() & others.keys())


def _vectorized(graph: CompiledGraph | None) -> dict[str, bool]:
    kernels = graph.code.kernels if graph is not None and graph.code is not None else ()
    return {kernel.name: "at::vec" in kernel.source for kernel in kernels}
