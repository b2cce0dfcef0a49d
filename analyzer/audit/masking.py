"""Did fusion undo what an ablation of lowering did?"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.audit.postconditions.inlining import reads_nothing
from analyzer.audit.postconditions.record import Arm
from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact


@dataclass(frozen=True, slots=True)
class Masking:
    """The values that only the ablated arm realizes, and those that are read solely in the group that computes them."""

    gained: tuple[str, ...]
    kept: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def by_fusion(self) -> bool:
        """Whether fusion put every gained value back together with all its readers."""
        return bool(self.gained) and self.gained == self.kept


def masking(base: Arm, ablated: Arm) -> Masking:
    """Follows each value that the ablated arm realizes and the base does not."""
    before = {fact.name for fact in base.facts.nodes if fact.fate is Fate.REALIZED}
    free = reads_nothing(ablated.facts)
    gained = [
        fact
        for fact in ablated.facts.nodes
        if fact.fate is Fate.REALIZED and fact.node.live and fact.name not in before | free
    ]
    held = {fact.name: ablated.facts.buffer(fact.buffer) if fact.buffer else None for fact in gained}
    home = {name: _group_that_keeps(buffer, ablated.facts) for name, buffer in held.items()}
    kept = tuple(name for name, group in home.items() if group is not None)
    groups = tuple(dict.fromkeys(group.name for group in home.values() if group is not None))
    return Masking(tuple(home), kept, groups)


def _group_that_keeps(buffer: BufferFact | None, facts: GraphFacts) -> GroupFact | None:
    """The group that computes a buffer and holds all its readers."""
    if buffer is None or buffer.group is None:
        return None
    group = next((group for group in facts.groups if group.name == buffer.group), None)
    return group if group is not None and set(buffer.users) <= set(group.members) else None
