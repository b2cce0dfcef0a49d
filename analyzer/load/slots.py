"""The artifacts of one graph: their files, the trace records that stand in for them, and why one may be missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.artifacts import fx_graph, ir_dump, output_code, provenance, rare, runnable
from analyzer.artifacts.trace_log import POST_GRAD, CacheEvent
from analyzer.model import CompiledGraph
from analyzer.version import at_least

Parser = Callable[[str, str], Any]
"""`parse(text, source)` of an artifact module; its result has an `artifact`."""

STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_PREFIXED = re.compile(r"(?!(?:op|buf)\d)(\w+)_(?:op|buf)\d+$")
_SUBGRAPH = re.compile(r"\w+_graph_\d")
FROM_CACHE = "the graph came from a warm cache: nothing was compiled, so nothing was dumped"
_TRACKING = "torch._inductor.config.trace.provenance_tracking_level"


@dataclass(frozen=True, slots=True)
class Slot:
    """An artifact's file, its field in `CompiledGraph`, and the trace record that can stand in for it.

    `expected`: its absence is worth a line in the report. `better`: the field that is asked instead where it is there;
    then the file is only checked.
    """

    file: str
    field: str
    parse: Parser
    record: tuple[str, ...] = ()
    expected: bool = True
    better: str | None = None


SLOTS = (
    Slot("fx_graph_transformed.py", "fx", fx_graph.parse, POST_GRAD),
    Slot("fx_graph_readable.py", "readable", fx_graph.parse, ("before_post_grad_graph",), better="fx"),
    Slot("ir_pre_fusion.txt", "pre", ir_dump.parse),
    Slot("ir_post_fusion.txt", "post", ir_dump.parse),
    Slot("output_code.py", "code", output_code.parse, ("inductor_output_code",)),
    Slot("output_code.cpp", "code", output_code.parse, ("inductor_aot_wrapper_code",), expected=False),
    Slot("fx_graph_runnable.py", "runnable", runnable.parse, ("fx_graph_runnable",)),
    Slot(
        "inductor_provenance_tracking_node_mappings.json",
        "provenance",
        provenance.parse,
        ("inductor_provenance_tracking_node_mappings",),
    ),
    Slot(rare.SIDECAR, "sidecar", rare.sidecar, expected=False),
    Slot(rare.DEVICELESS, "deviceless", rare.deviceless, expected=False),
    Slot(rare.PTX, "ptx", rare.ptx, expected=False),
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What tells why an artifact is missing: the files that are there, and how the graph was compiled.

    `failure` is what a capture saw of a compile that failed.
    """

    present: frozenset[str]
    kind: str = "unknown"
    version: str | None = None
    settings: Mapping[str, str] | None = None
    cache: CacheEvent = CacheEvent.UNKNOWN
    failure: str | None = None


def missing_cause(slot: Slot, seen: Circumstances) -> str:
    """Why Inductor did not write an artifact, as far as its neighbours tell."""
    if slot.field == "provenance":
        return _why_no_provenance(seen)
    if seen.cache is CacheEvent.HIT and slot.field in ("fx", "readable", "pre", "post"):
        return FROM_CACHE
    if seen.failure and slot.field in ("fx", "pre", "post", "code"):
        return f"the compile failed before it was written: {seen.failure}"
    if slot.field in ("pre", "post") and seen.present & {"output_code.py", "output_code.cpp"}:
        return "not among the files, though Inductor writes it before the output code"
    if slot.field == "fx" and "fx_graph_runnable.py" in seen.present:
        return "the compile failed in a pass on the FX graph, before it was written"
    if slot.field in ("pre", "post") and "fx_graph_readable.py" in seen.present:
        return "the compile failed before it was written: in lowering, scheduling or fusion"
    if slot.field == "code" and seen.present & {"ir_post_fusion.txt", "ir_pre_fusion.txt"}:
        return _why_no_code(seen)
    return "not among the files"


def _why_no_code(seen: Circumstances) -> str:
    """Folders of ahead-of-time compiles have no kind in their names."""
    if seen.kind == "unknown" and seen.version is not None and not at_least(seen.version, (2, 9)):
        return f"torch {seen.version} keeps no copy of what it compiles ahead of time; torch 2.9 and later do"
    return "the compile failed in code generation"


def _why_no_provenance(seen: Circumstances) -> str:
    settings = seen.settings or {}
    if seen.version is not None and not at_least(seen.version, (2, 7)):
        return f"torch {seen.version} does not write it; torch 2.7 and later do"
    if settings.get("INDUCTOR_PROVENANCE") == "0" or settings.get(_TRACKING) == "0":
        return "provenance tracking was off; INDUCTOR_PROVENANCE=1 switches it on"
    if "output_code.py" not in seen.present and "fx_graph_readable.py" in seen.present:
        return "the compile failed before it was written"
    if seen.kind == "backward":
        return "torch writes none for a backward graph that is compiled lazily, at the call of backward()"
    return "not among the files: provenance tracking off, or a torch before 2.7"


def overwritten(graph: CompiledGraph) -> tuple[str, ...]:
    """Subgraphs of control flow whose dumps were written over those of the graph around them (`cond`, `scan`).

    Inductor schedules each subgraph with its parent's debug folder. Their nodes bear its name; a subgraph without nodes
    leaves dumps that are empty, though kernels are called.
    """
    dump = graph.post or graph.pre
    if dump is None:
        return ()
    names = (_PREFIXED.match(leaf.name) for leaf in dump.leaves())
    found = tuple(dict.fromkeys(match[1] for match in names if match))
    return found if dump.nodes or dump.artifact.problems else _nodeless(graph)


def _nodeless(graph: CompiledGraph) -> tuple[str, ...]:
    """Subgraphs without kernels, of a graph that calls kernels and yet has empty dumps."""
    calls = [call for call in graph.code.calls() if call.kind != "subgraph"] if graph.code else []
    nested = [name for name in graph.fx.subgraphs if _SUBGRAPH.match(name)] if graph.fx else []
    if not calls:
        return ()
    busy = {call.scope for call in calls}
    return tuple(name for name in nested if name not in busy) or tuple(nested)
