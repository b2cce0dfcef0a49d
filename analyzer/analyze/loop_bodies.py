"""Whose value a loop body computes: FX nodes that can be computed from what it loads, told apart by what it does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from analyzer.analyze.fit import Cost, cost, fits, is_exact
from analyzer.analyze.known import Settled
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.strides import is_relaid, load_offsets, offset_of
from analyzer.analyze.targets import is_getitem, is_view, mutates, scatters
from analyzer.model import FxNode

_JOINING = ("cat", "constant_pad_nd")
"""Targets that may be lowered to a concatenation."""


class LoopBodies:
    """Answers with what is known at the time; it settles nothing itself."""

    def __init__(self, known: Settled) -> None:
        self.known = known
        self.fx = known.fx

    def owners(self, leaf: Leaf) -> list[str]:
        """The nodes whose value a buffer may hold: one when it is known."""
        return self._computed(leaf) or self._only_writer(leaf)

    def _computed(self, leaf: Leaf) -> list[str]:
        """The nodes that a loop body's value may be: the best ones, if several are equally good."""
        whole = self.known.expanded(leaf)
        values = self.known.values(whole.loads)
        if values is None:
            return []
        values = self._before_write(leaf, values)
        costs = self._costs(whole, values, self.fx.computable(values) - values if values else self.fx.free)
        if not costs and whole.computes:
            costs = self._costs(whole, values, self.fx.computable(values, loose=True) - values)
        best = min(costs.values(), default=None)
        equal = (name for name in costs if costs[name] == best or (best and best.is_view and not costs[name].is_view))
        found = sorted(equal, key=self.fx.order.__getitem__)
        if not found:
            return self._relaid_input(leaf)
        exact = {name for name in costs if len(costs) > 1 and is_exact(self.fx, name, whole, values)}
        found = [name for name in found if name in exact] or sorted({*found, *exact}, key=self.fx.order.__getitem__)
        return self._narrowed(leaf, found) if len(found) > 1 else found

    def _relaid_input(self, leaf: Leaf) -> list[str]:
        """The graph input that a plain copy brings into the layout that a library call needs."""
        name, body = next(iter(leaf.loads), ""), leaf.node.body
        layouts = dict(leaf.node.layouts)
        relaid = body is not None and is_relaid(body, name, layouts.get(name), leaf.buffer.layout)
        alone = len(leaf.loads) == 1 and not leaf.buffer.mutations and self.fx.is_tensor_input(name)
        return [name] if relaid and alone and name in self.known.hints.allowed.get(leaf.name, {name}) else []

    def _costs(self, leaf: Leaf, values: Collection[str], names: Iterable[str]) -> dict[str, Cost]:
        targets = [self.known.value(target) for target in leaf.buffer.mutations]
        able = self.fx.ownable.intersection(names)
        free = (able - self.known.owner.nodes) | (able & self.known.said_to_write(leaf))
        allowed = free.intersection(self.known.hints.allowed.get(leaf.name, free))
        likely = (name for name in allowed if self._may_own(leaf, self.fx.nodes[name]))
        found = ((name, cost(self.fx, name, leaf, values, targets)) for name in likely)
        return {name: value for name, value in found if value is not None}

    def _may_own(self, leaf: Leaf, node: FxNode) -> bool:
        """What can be said without looking at all operations; the questions that most nodes fail come first."""
        if not self._ends_like(leaf, node) or not fits(node, leaf.buffer.layout):
            return False
        if self._is_concatenated(leaf) and not self._joins(node):
            return False
        return self.known.may_write(leaf, node) and self._is_own_value(leaf, node)

    def _before_write(self, leaf: Leaf, values: frozenset[str]) -> frozenset[str]:
        """The values that it loads, those made by its own write replaced by what the written buffers' bodies load."""
        said = self.known.said_to_write(leaf)
        written = (self.known.leaves[t] for t in leaf.buffer.mutations if t in self.known.leaves) if said else ()
        return (values - said).union(*(self.known.values(target.loads) or () for target in written))

    def _is_own_value(self, leaf: Leaf, node: FxNode) -> bool:
        """A value made here: views need no buffer, and only a mutation may write into another one."""
        parent = self.fx.parent(node)
        if is_view(node) and not self._may_hold_view(leaf, node):
            return False
        if is_getitem(node) and parent is not None and is_view(parent):
            return False
        if not leaf.computes and node in self.fx.fused_patterns:
            return False
        maker, writes = parent or node, bool(leaf.buffer.mutations)
        if writes:
            return (mutates(maker) or scatters(maker)) and self._writes_there(leaf, node)
        return not mutates(maker) or not any(self.fx.is_tensor_input(target) for target in self.fx.targets(maker))

    def _may_hold_view(self, leaf: Leaf, view: FxNode) -> bool:
        """Where a view is made dense: in what is returned, in a concatenation's memory, in a plain copy."""
        if leaf.name in self.known.hints.returned or self._is_concatenated(leaf):
            return True
        return not leaf.computes and view.name not in self.fx.outputs

    def _is_concatenated(self, leaf: Leaf) -> bool:
        """A part of a concatenation, written into its memory: one of its arguments, a view of one made dense.

        torch/_inductor/ir.py, `ConcatKernel.realize_into`.
        """
        whole = (self.known.leaves[name] for name in leaf.buffer.aliases if name in self.known.leaves)
        return any("ConcatKernel" in joined.node.inner for joined in whole)

    def _joins(self, node: FxNode) -> bool:
        """Whether a concatenation has the node, or a view of it that changes nothing, among its arguments."""
        return bool(self._joined & {node.name, self.fx.last_alias(node.name)})

    @cached_property
    def _joined(self) -> frozenset[str]:
        """The arguments of all concatenations."""
        calls = [node for target in _JOINING for node in self.fx.by_packet.get(target, ())]
        return frozenset(name for node in calls for name in node.inputs)

    def _writes_there(self, leaf: Leaf, node: FxNode) -> bool:
        """Of the nodes that write into inputs only those that write into this one."""
        inputs = [target for target in leaf.buffer.mutations if target in self.fx.writers]
        return all(node.name in (*self.fx.writers[target], *self.fx.written(target)) for target in inputs)

    def _ends_like(self, leaf: Leaf, node: FxNode) -> bool:
        wanted = None if is_view(node) else self.fx.roots[node.name]
        return wanted is None or leaf.root is None or leaf.root in wanted

    def _narrowed(self, leaf: Leaf, found: list[str]) -> list[str]:
        """Equals told apart: by what the graph returns, and by where in the loaded buffer they start."""
        if all(name in self.known.hints.allowed.get(leaf.name, ()) and is_view(self.fx.nodes[name]) for name in found):
            return found[-1:]
        for load in sorted(leaf.loads):
            found = self._starting_there(leaf, load, found)
        return found

    def _starting_there(self, leaf: Leaf, load: str, found: list[str]) -> list[str]:
        """Those whose elements start where the body's index into the loaded buffer does, as far as that is known."""
        value, body = self.known.value(load), leaf.node.body
        if body is None or value is None or len(found) < 2:
            return found
        layout = dict(leaf.node.layouts).get(load)
        seen = {None, *load_offsets(body, load)}
        return [name for name in found if offset_of(self.fx, name, value, layout) in seen] or found

    def _only_writer(self, leaf: Leaf) -> list[str]:
        """The one node that writes into the input that this buffer alone writes into."""
        for target in leaf.buffer.mutations if self._writes_alone(leaf) else ():
            for writer in self.fx.writers.get(target, ())[:1]:
                return sorted(self.fx.written(target)) or [writer]
        return []

    def _writes_alone(self, leaf: Leaf) -> bool:
        targets = set(leaf.buffer.mutations)
        alone = all(len(self.fx.writers.get(t, ())) == 1 and self.known.writes[t] == 1 for t in targets)
        return alone and len(targets) == 1
