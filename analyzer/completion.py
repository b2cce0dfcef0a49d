"""The names in a run that a shell can complete: of its graphs, and of what `explain` can tell about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from analyzer.errors import AnalyzerError
from analyzer.load import load_run
from analyzer.model import CompiledGraph, Run

_PLAIN = re.compile(r"[\w.+-]{1,200}")
"""Shells take completions for text of the command line, and a run may be a stranger's: no quotes, spaces or colons."""


def graph_names(path: Path, typed: str) -> list[str]:
    """Names of compiled graphs that begin so; none where there is no run to read."""
    run = _run(path)
    return _plain((graph.name for graph in run.graphs), typed) if run is not None else []


def item_names(path: Path, typed: str, graph: str | None = None) -> list[str]:
    """Names of FX nodes, buffers, ops, groups and kernels that begin so."""
    run = _run(path)
    graphs = [one for one in run.graphs if graph in (None, one.name, one.label)] if run is not None else []
    return _plain((name for one in graphs for name in _items(one)), typed)


def _run(path: Path) -> Run | None:
    """A shell has no place for a message: what cannot be read has no names."""
    try:
        return load_run(path)
    except (AnalyzerError, OSError):
        return None


def _items(graph: CompiledGraph) -> Iterator[str]:
    for node in graph.fx.nodes if graph.fx is not None else ():
        if node.op != "output":
            yield node.name
    for dump in (graph.pre, graph.post):
        for leaf in dump.leaves() if dump is not None else ():
            yield leaf.name
            yield from (buffer.name for buffer in leaf.buffers)
    yield from (node.name for node in graph.post.nodes) if graph.post is not None else ()
    yield from (call.callee for call in graph.code.calls()) if graph.code is not None else ()


def _plain(names: Iterator[str], typed: str) -> list[str]:
    return list(dict.fromkeys(name for name in names if name.startswith(typed) and _PLAIN.fullmatch(name)))
