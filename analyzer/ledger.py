"""The inline-versus-fuse ledger: for each op that computes, what lowering and scheduling did with it, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analyzer.apart import Apart, Boundaries
from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact, NodeFact, Storage
from analyzer.why import Reasons, Why

_LISTED = (Fate.REALIZED, Fate.INLINED, Fate.FOLDED, Fate.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Entry:
    """One op. `outcome` and `why` are of lowering; `scheduling` says with what the buffer's loop was fused, and
    `removed` that fusion left nothing to store. `group` is None for what has no buffer of its own."""

    node: str
    outcome: str
    why: Why | None = None
    scheduling: str | None = None
    removed: bool = False
    group: str | None = None

    @property
    def told(self) -> str:
        """The whole entry in a line: `realized as buf3; fused with op1 at scheduling; removed, never stored`."""
        return "; ".join(
            text for text in (self.outcome, self.scheduling, "removed, never stored" if self.removed else None) if text
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries of a graph in graph order, and the groups that read each other's buffers and are still two."""

    entries: tuple[Entry, ...]
    apart: tuple[Apart, ...]

    def entry(self, node: str) -> Entry | None:
        """The entry of an FX node."""
        return next((entry for entry in self.entries if entry.node == node), None)


def ledger(facts: GraphFacts) -> Ledger:
    """The ledger of one graph. Inputs, constants and views have no entry."""
    entries = tuple(_entry(fact, facts) for fact in _Writer(facts).listed())
    return Ledger(entries, tuple(Boundaries(facts).neighbours()))


def entry_of(facts: GraphFacts, node: NodeFact) -> Entry | None:
    """The ledger's entry of one node; None for an input, a constant or a view."""
    return _Writer(facts).entry(node) if node.fate in _LISTED else None
