"""The inline-versus-fuse ledger: for each op that computes, what lowering and scheduling did with it, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact, NodeFact, Storage
from analyzer.reasons.apart import Apart, Boundaries
from analyzer.reasons.why import Reasons, Why
from analyzer.words import counted

_LISTED = (Fate.REALIZED, Fate.INLINED, Fate.FOLDED, Fate.UNKNOWN)
REMOVED = "removed, never stored"


@dataclass(frozen=True, slots=True)
class Entry:
    """One op.

    `outcome` and `why` are lowering's doing. `scheduling` says what the op's buffer was fused with, and `removed` that
    its value is used up inside that group; both only for an op with a buffer of its own.
    """

    node: str
    outcome: str
    why: Why | None = None
    scheduling: str | None = None
    removed: bool = False

    @property
    def told(self) -> str:
        """The whole entry: `realized as buf3; fused with op1 at scheduling; removed, never stored`."""
        return "; ".join(text for text in (self.outcome, self.scheduling, REMOVED if self.removed else None) if text)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries in graph order, and the pairs of groups of which one reads the other's buffers."""

    entries: tuple[Entry, ...]
    apart: tuple[Apart, ...]

    def entry(self, node: str) -> Entry | None:
        """The entry of an FX node."""
        return next((entry for entry in self.entries if entry.node == node), None)


def ledger(facts: GraphFacts) -> Ledger:
    """The ledger of one graph. Inputs, constants, views and dead nodes have no entry."""
    writer = Entries(facts)
    entries = (writer.of(fact) for fact in facts.nodes)
    return Ledger(tuple(entry for entry in entries if entry is not None), Boundaries(facts).neighbours())


@dataclass(frozen=True)
class Entries:
    """Writes the entries of one graph."""

    facts: GraphFacts

    @cached_property
    def reasons(self) -> Reasons:
        """Why lowering did what it did."""
        return Reasons(self.facts)

    @cached_property
    def _buffers(self) -> Mapping[str, BufferFact]:
        return {buffer.name: buffer for buffer in self.facts.buffers}

    @cached_property
    def _groups(self) -> Mapping[str, GroupFact]:
        return {group.name: group for group in self.facts.groups}

    def of(self, fact: NodeFact) -> Entry | None:
        """The entry of one node, if it computes anything."""
        if fact.fate not in _LISTED or not fact.node.live:
            return None
        if fact.fate == Fate.REALIZED and fact.buffer is not None:
            return self._realized(fact, fact.buffer)
        if fact.fate == Fate.INLINED:
            return Entry(fact.name, self._inlined(fact), self.reasons.inlined(fact))
        return Entry(fact.name, f"{fact.fate}: {fact.reason}" if fact.reason else str(fact.fate))

    def _inlined(self, fact: NodeFact) -> str:
        """`inlined into buf7 (1 user)`, `inlined into buf7 and buf9 (recomputed 2×)`."""
        places = self.reasons.bodies(fact)
        if len(places) > 1:
            return f"inlined into {_joined(places)} (recomputed {len(places)}×)"
        users = len(self.reasons.users(fact.name))
        return f"inlined into {_joined(places)}" + (f" ({counted(users, 'user')})" if users else "")

    def _realized(self, fact: NodeFact, name: str) -> Entry:
        places = self.reasons.bodies(fact)
        again = f", computed again inside {_joined(places)}" if places else ""
        buffer = self._buffers.get(name)
        if buffer is None:
            return Entry(fact.name, f"realized as {name}{again}")
        removed = buffer.storage == Storage.REMOVED
        return Entry(
            fact.name, f"realized as {name}{again}", self.reasons.realized(buffer), self._fused(buffer), removed
        )

    def _fused(self, buffer: BufferFact) -> str | None:
        """The other members of the buffer's group."""
        group = self._groups.get(buffer.group or "")
        others = [op for op in group.members if op != buffer.operation] if group is not None else []
        if not others:
            return None
        told = others if len(others) <= 4 else [*others[:3], f"{len(others) - 3} more"]
        return f"fused with {', '.join(told)} at scheduling"


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(text for text in (", ".join(names[:-1]), names[-1]) if text)
