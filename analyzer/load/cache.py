"""Was a run compiled, or taken from a cache? A warm run leaves no graph folder; it must not look like an empty one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analyzer.artifacts.trace_log import CacheEvent, TraceGraph, TraceLog
from analyzer.model import CacheState, CompiledGraph
from analyzer.words import counted

if TYPE_CHECKING:
    from analyzer.artifacts.manifest import Manifest

COLD_HINT = (
    "for a cold run: `inductor-audit capture SCRIPT`, or set TORCHINDUCTOR_FX_GRAPH_CACHE=0 before Python starts"
)


def cache_state(graphs: Sequence[CompiledGraph], traces: Sequence[TraceLog], manifest: Manifest | None) -> CacheState:
    """Warm when graphs came from a cache, cold when all were compiled, unknown where nothing says so."""
    hits, compiled = _counts(traces, manifest)
    if hits:
        dumped = any(graph.pre is not None or graph.post is not None for graph in graphs)
        return CacheState.MIXED if dumped or compiled else CacheState.WARM
    if compiled or any(_cache_off(graph) for graph in graphs):
        return CacheState.COLD
    return CacheState.UNKNOWN


def cache_notes(
    graphs: Sequence[CompiledGraph], traces: Sequence[TraceLog], manifest: Manifest | None
) -> Iterator[str]:
    """What a reader must know: cache hits, or that nothing was compiled here."""
    hits, _ = _counts(traces, manifest)
    if hits:
        yield f"{counted(hits, 'graph')} came from a warm cache: not compiled here, so not dumped; {COLD_HINT}"
    elif not graphs:
        yield ("no graph folder: nothing was compiled here, or every graph came from a warm cache; " + COLD_HINT)


def cache_event(log: TraceLog | None, graph: TraceGraph | None) -> CacheEvent:
    """What the cache did in the compile that a graph of a trace log belongs to."""
    compiles = log.compiles if log is not None else ()
    found = (compile_ for compile_ in compiles if any(one is graph for one in compile_.graphs))
    return next((compile_.cache for compile_ in found), CacheEvent.UNKNOWN)


def _counts(traces: Sequence[TraceLog], manifest: Manifest | None) -> tuple[int, int]:
    """Cache hits, and graphs compiled (cache missed, bypassed or off)."""
    events = [compile_.cache for log in traces for compile_ in log.compiles]
    hits = events.count(CacheEvent.HIT)
    compiled = sum(1 for event in events if event in (CacheEvent.MISS, CacheEvent.BYPASS, CacheEvent.DISABLED))
    for process in manifest.processes if manifest and not hits else ():
        hits += process.cache.hits
        compiled += process.graphs
    return hits, compiled


def _cache_off(graph: CompiledGraph) -> bool:
    config = graph.runnable.config if graph.runnable else {}
    return config.get("torch._inductor.config.fx_graph_cache") == "False" or graph.sidecar is not None
