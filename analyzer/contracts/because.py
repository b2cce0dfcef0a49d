"""The compiler's reason behind a broken promise, as `explain` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from analyzer.facts import Fate, GraphFacts, GroupFact, NodeFact
from analyzer.reasons.apart import Boundaries
from analyzer.reasons.ledger import Entries


@dataclass(frozen=True)
class Because:
    """Answers for one graph; nothing is worked out before it is asked for."""

    facts: GraphFacts

    @cached_property
    def _entries(self) -> Entries:
        return Entries(self.facts)

    @cached_property
    def _boundaries(self) -> Boundaries:
        return Boundaries(self.facts)

    def lowered(self, node: NodeFact) -> str:
        """Where a node is computed, and why lowering did with it what it did: the end of a sentence."""
        if node.fate == Fate.UNKNOWN:
            return ""
        entry = self._entries.of(node)
        noun = "kernel" if len(node.kernels) == 1 else "kernels"
        kernels = f", in {noun} {', '.join(node.kernels)}" if node.kernels else ""
        return kernels + (f": {entry.why}" if entry is not None and entry.why is not None else "")

    def apart(self, first: str, second: str) -> str:
        """Why two groups are not one."""
        groups: dict[str, GroupFact] = {group.name: group for group in self.facts.groups}
        if first == second or not {first, second} <= groups.keys():
            return ""
        return f": {self._boundaries.between(groups[first], groups[second]).why}"
