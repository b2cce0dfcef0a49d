"""A static analyzer for TorchInductor debug artifacts.

The Python interface: `load_run` reads a run, `analyze_graph` draws the facts from one of its graphs, `to_networkx`
makes them a graph to query. Each is imported when it is first asked for, so that `import analyzer` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.analyze import analyze as analyze_graph
    from analyzer.graph import computing, to_networkx
    from analyzer.load import load_run

__all__ = ["analyze_graph", "computing", "load_run", "to_networkx"]

_HOMES = {
    "analyze_graph": ("analyzer.analyze", "analyze"),
    "computing": ("analyzer.graph", "computing"),
    "load_run": ("analyzer.load", "load_run"),
    "to_networkx": ("analyzer.graph", "to_networkx"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, function = _HOMES[name]
    return getattr(import_module(module), function)
