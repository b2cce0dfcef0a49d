"""What the ablation laboratory needs of a captured process: a seed, compile times, and the graphs with real inputs.

Asked for by an environment variable that holds a JSON object: `seed`, set as soon as torch has been imported, so that a
script that draws random numbers draws the same ones in every arm; `compile_log`, a file that takes the time of each
compile; `socket`, where the process serves rounds of calls once the script has ended (`rounds.py`).
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_audit_inside.notes import guarded
from inductor_audit_inside.replay import RecordedGraph
from inductor_audit_inside.store import debug_folder
from inductor_audit_inside.wrap import after, around

VARIABLE = "INDUCTOR_AUDIT_LAB"
_ATTRIBUTE = "_inductor_audit_graph"
_GRAPHS: list[RecordedGraph] = []
_compiles: list[dict[str, Any]] = []


def wish() -> dict[str, Any] | None:
    """What the laboratory asks of this process; None in a plain capture."""
    text = os.environ.get(VARIABLE)
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else None


def on_torch(module: ModuleType) -> None:
    """Seeds; the script's own seeding comes later and wins."""
    asked = wish()
    if asked is None:
        return
    module.manual_seed(asked["seed"])
    if asked.get("socket"):
        os.register_at_fork(after_in_child=_GRAPHS.clear)
        atexit.register(_serve, asked)


def _serve(asked: dict[str, Any]) -> None:
    """At the end of the script: `atexit` calls the last one registered first, so nothing of torch is gone yet."""
    from inductor_audit_inside import rounds

    called = [graph for graph in _GRAPHS if graph.calls]
    if called:
        with guarded("rounds"):
            rounds.serve(asked["socket"], called, asked["seed"])


# ------------------------------------------------------------------------------------------------------ compile times


def watch_compiles(module: ModuleType) -> None:
    """Inductor's own part of a compile: from the graph that AOTAutograd hands over to loaded kernels."""
    asked = wish()
    if asked is not None and asked.get("compile_log"):
        around(module, "_compile_fx_inner", lambda original: _timed(original, Path(asked["compile_log"])))


def _timed(original: Callable[..., Any], log: Path) -> Callable[..., Any]:
    def compile_fx_inner(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        name = _graph_name()
        try:
            return original(*args, **kwargs)
        finally:
            with guarded("compile times"):
                _compiles.append({"graph": name or _graph_name(), "seconds": time.perf_counter() - began})
                log.write_text(json.dumps(_compiles), encoding="utf-8")

    return compile_fx_inner


def _graph_name() -> str | None:
    folder = debug_folder()
    return None if folder is None else Path(folder).name


# ------------------------------------------------------------------------------------------------------- graph calls


def watch_calls(module: ModuleType) -> None:
    """Keep each compiled graph with the inputs of its first call (CompiledFxGraph; in codecache.py up to torch 2.5)."""
    kind = getattr(module, "CompiledFxGraph", None)
    asked = wish()
    if asked is None or not asked.get("socket") or kind is None or kind.__module__ != module.__name__:
        return
    after(kind, "__init__", _on_new_graph)
    around(kind, "__call__", _recording_call)


def _on_new_graph(_result: None, graph: Any, *_: Any, **__: Any) -> None:
    name = _graph_name() or f"graph_{len(_GRAPHS)}"
    vars(graph)[_ATTRIBUTE] = recorded = RecordedGraph(name, _user_outputs(name))
    _GRAPHS.append(recorded)


def _user_outputs(name: str) -> int | None:
    """How many leading outputs of a forward graph are its results, not saved tensors (ViewAndMutationMeta of AOT)."""
    from torch._guards import TracingContext

    meta = getattr(TracingContext.try_get(), "fw_metadata", None)
    number = getattr(meta, "num_forward_returns", None) if "forward" in name else None
    return number if isinstance(number, int) else None


def _recording_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, inputs: Any) -> Any:
        recorded = vars(self).get(_ATTRIBUTE)
        if recorded is not None:
            with guarded("recording inputs"):
                recorded.on_call(lambda fresh: original(self, fresh), inputs)
        return original(self, inputs)

    return call
