"""What the differences cost: bytes that the graph allocates, reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.facts import GraphFacts

_COUNTS = ("allocated_bytes", "bytes_read", "bytes_written")


def cost_changes(old: GraphFacts, new: GraphFacts) -> Iterator[Change]:
    """Sums over the graph; nothing where one side does not know."""
    for aspect in _COUNTS:
        before, after = getattr(old.summary, aspect), getattr(new.summary, aspect)
        if None not in (before, after) and before != after:
            sides = (Side((facts.graph.name,), str(value)) for facts, value in ((old, before), (new, after)))
            yield Change(Kind.CHANGED, Layer.COST, aspect, "graph", *sides)
