"""What is known so far about whose value each buffer holds, and what that makes of a body's loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf
from analyzer.model import FxNode


class Assignment(dict[str, str]):
    """Buffers and the FX node of each; `nodes` are those that are anybody's."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.nodes: set[str] = set()
        self._count: Counter[str] = Counter()
        for buffer, node in (given or {}).items():
            self[buffer] = node

    def __setitem__(self, buffer: str, node: str) -> None:
        if buffer in self:
            self._release(self[buffer])
        self._count[node] += 1
        self.nodes.add(node)
        super().__setitem__(buffer, node)

    def __delitem__(self, buffer: str) -> None:
        self._release(self[buffer])
        super().__delitem__(buffer)

    def _release(self, node: str) -> None:
        self._count[node] -= 1
        if not self._count[node]:
            self.nodes.discard(node)


@dataclass(frozen=True)
class Known:
    """`owner` maps buffers to FX nodes, `implements` library calls and what writes into inputs to what they compute."""

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owner: Mapping[str, str]
    implements: Mapping[str, str]

    def value(self, load: str) -> str | None:
        """The FX node whose value a buffer, a graph input or a constant of the module is."""
        name = self.owner.get(load) or self._written(load) or self.fx.attributes.get(load, load)
        return name if name in self.fx.nodes else None

    def _written(self, load: str) -> str | None:
        """What a buffer that writes into a graph input left there."""
        leaf = self.leaves.get(load)
        return self.implements.get(load) if leaf is not None and leaf.buffer.mutations else None

    def values(self, loads: Iterable[str]) -> frozenset[str] | None:
        """The FX nodes whose values the loads are; None when that of a buffer is not known.

        Constants that lowering makes for itself (packed weights) have no node and are left out.
        """
        named = {load: self.value(load) for load in loads}
        lost = [load for load, name in named.items() if name is None and load in self.leaves]
        return None if lost else frozenset(name for name in named.values() if name is not None)

    def values_of(self, leaf: Leaf) -> frozenset[str] | None:
        """The values that a leaf is computed from, through helpers."""
        return self.values(self.expanded(leaf).loads)

    def expanded(self, leaf: Leaf) -> Leaf:
        """The leaf with the buffers that it reads and that have no owner counted as part of its body."""
        if all(self._helper(load) is None for load in leaf.loads):
            return leaf
        loads, words, constants, vague = set(), Counter(leaf.words), Counter(leaf.constants), leaf.vague
        queue = list(leaf.loads)
        seen = {leaf.name, *queue}
        while queue:
            name = queue.pop()
            helper = self._helper(name)
            if helper is None:
                loads.add(name)
                continue
            words, constants = words + helper.words, constants + helper.constants
            vague |= helper.is_partial
            queue += [load for load in helper.loads if load not in seen]
            seen |= helper.loads
        return replace(leaf, loads=frozenset(loads), words=words, constants=constants, vague=vague)

    def _helper(self, name: str) -> Leaf | None:
        """A buffer that holds no node's value and whose loop body, or template, is a part of its readers'."""
        leaf = self.leaves.get(name)
        if leaf is None or name in self.owner or (leaf.is_extern and not leaf.is_partial) or leaf.buffer.mutations:
            return None
        return leaf


@dataclass(frozen=True)
class Hints:
    """What better evidence says of buffers.

    `allowed`: the FX nodes that a buffer may hold. `items`: the result numbers of MultiOutput buffers. `helpers` hold
    no node's value. `returned`: what the graph returns; there, and in plain copies, a view's value may be made dense.
    """

    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    helpers: Collection[str] = frozenset()
    returned: Collection[str] = frozenset()


@dataclass(frozen=True)
class Settled(Known):
    """What alignment has settled so far: it adds to `owner` and `implements`. `given` is what it started with."""

    owner: Assignment
    implements: Assignment
    hints: Hints
    given: Mapping[str, str]

    @cached_property
    def writes(self) -> Counter[str]:
        """For each input how many buffers write into it."""
        return Counter(target for leaf in self.leaves.values() for target in set(leaf.buffer.mutations))

    def said_to_write(self, leaf: Leaf) -> frozenset[str]:
        """What better evidence gives to buffers that this one alone writes into: their value in the end."""
        return frozenset(self.given[t] for t in leaf.buffer.mutations if t in self.given and self.writes[t] == 1)

    def may_write(self, leaf: Leaf, node: FxNode) -> bool:
        """A returned buffer that this one alone writes into holds what it writes: one of the values returned there."""
        last = (t for t in leaf.buffer.mutations if t in self.hints.returned and self.writes[t] == 1)
        return all(node.name in self.hints.allowed[target] for target in last)
