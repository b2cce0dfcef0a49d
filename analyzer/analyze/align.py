"""Finds whose value each buffer holds, from structure alone: what a stranger's dump with nothing but text allows.

Graph inputs have equal names in the IR and the FX graph. So, buffer by buffer, the candidates are the FX nodes that can
be computed from exactly the values that the body loads, with the buffer's shape and dtype; the body's operations then
tell them apart. What stays ambiguous stays unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analyzer.analyze.fit import Cost, cost, fits
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.known import Assignment, Known
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.lowerings import roots
from analyzer.analyze.strides import load_offsets, offset_of
from analyzer.analyze.targets import TEMPLATED, is_getitem, is_view, mutates, scatters
from analyzer.model import DumpNode, FxNode

HELPER = "no FX node has this value: a helper of a lowering"
_PASSES = 3


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


@dataclass
class Aligner:
    """Walks the buffers in dump order; `owner` starts with what better evidence has settled.

    `implements` maps the buffers of library calls to the node whose call they are (with several results, no buffer
    holds that node's value), `ambiguous` buffers to the several nodes that they may hold.
    """

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owner: dict[str, str]
    hints: Hints = Hints()
    implements: dict[str, str] = field(default_factory=dict)
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.owner = self._owned = Assignment(self.owner)
        self.implements = self._called = Assignment(self.implements)

    @cached_property
    def known(self) -> Known:
        """The same owners, for questions about loads."""
        return Known(self.fx, self.leaves, self.owner)

    def run(self) -> None:
        """Passes over the dump until nothing new is settled; later buffers build on the owners of earlier ones."""
        self.reasons.update(dict.fromkeys(self.hints.helpers, HELPER))
        for _ in range(_PASSES):
            before = len(self.owner)
            for leaf in self.leaves.values():
                settled = (self.owner, self.implements, self.hints.helpers)
                if not any(leaf.name in known for known in settled):
                    self._settle(leaf)
            if len(self.owner) == before:
                return

    def _settle(self, leaf: Leaf) -> None:
        found = self._opaque(leaf) if leaf.is_extern else self._computed(leaf)
        self.ambiguous.pop(leaf.name, None)
        if len(found) == 1 and leaf.buffer.mutations:
            self._mutated(leaf, found[0])
        elif len(found) == 1:
            self.owner[leaf.name] = self.fx.last_alias(found[0])
        elif leaf.name in self.implements:
            self.reasons[leaf.name] = f"the call of {self.implements[leaf.name]}: other buffers hold its results"
        elif found:
            self.ambiguous[leaf.name] = tuple(found)
            self.reasons[leaf.name] = f"ambiguous: {', '.join(found[:6])}"
        else:
            self.reasons[leaf.name] = HELPER

    def _mutated(self, leaf: Leaf, node: str) -> None:
        """A loop or call that writes into another buffer: from here on, that buffer holds the node's value."""
        self.implements[leaf.name] = node
        self.reasons[leaf.name] = f"writes the value of {node} into {', '.join(leaf.buffer.mutations)}"
        for target in leaf.buffer.mutations:
            if target in self.leaves:
                self.owner[target] = self.fx.last_alias(node)

    # ------------------------------------------------------------------------------------------------- loop bodies

    def _computed(self, leaf: Leaf) -> list[str]:
        """The nodes that a loop body's value may be: the best ones, if several are equally good."""
        whole = self.known.expanded(leaf)
        values = self.known.values(whole.loads)
        if values is None:
            return []
        costs = self._costs(whole, values, self.fx.computable(values) - values if values else self.fx.free)
        if not costs and whole.computes:
            costs = self._costs(whole, values, self.fx.computable(values, loose=True) - values)
        best = min(costs.values(), default=None)
        found = sorted((name for name in costs if costs[name] == best), key=self.fx.order.__getitem__)
        return self._narrowed(leaf, found) if len(found) > 1 else found

    def _costs(self, leaf: Leaf, values: Collection[str], names: Iterable[str]) -> dict[str, Cost]:
        targets = [self.known.value(target) for target in leaf.buffer.mutations]
        likely = (name for name in names if self._may_own(leaf, self.fx.nodes[name]))
        found = ((name, cost(self.fx, name, leaf, values, targets)) for name in likely)
        return {name: value for name, value in found if value is not None}

    def _may_own(self, leaf: Leaf, node: FxNode) -> bool:
        """What can be said without looking at operations."""
        if node.op != "call_function" or not node.live or self._owned.gives(node.name) or self.fx.items(node.name):
            return False
        if node.name not in self.hints.allowed.get(leaf.name, {node.name}):
            return False
        return fits(node, leaf.buffer.layout) and self._is_own_value(leaf, node) and self._ends_like(leaf, node)

    def _is_own_value(self, leaf: Leaf, node: FxNode) -> bool:
        """A value made here: views need no buffer, and only a mutation may write into another one."""
        parent = self.fx.parent(node)
        if is_view(node) and leaf.name not in self.hints.returned and (leaf.computes or node.name in self.fx.outputs):
            return False
        if is_getitem(node) and parent is not None and is_view(parent):
            return False
        maker, writes = parent or node, bool(leaf.buffer.mutations)
        return writes == (mutates(maker) or (writes and scatters(maker)))

    def _ends_like(self, leaf: Leaf, node: FxNode) -> bool:
        wanted = None if is_view(node) else roots(node, self.fx.parent(node))
        return wanted is None or leaf.root is None or leaf.root in wanted

    def _narrowed(self, leaf: Leaf, found: list[str]) -> list[str]:
        """Equals told apart: by what the graph returns, and by where in the loaded buffer they start."""
        if all(name in self.hints.allowed.get(leaf.name, ()) and is_view(self.fx.nodes[name]) for name in found):
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

    # ---------------------------------------------------------------------------------------------- extern kernels

    def _opaque(self, leaf: Leaf) -> list[str]:
        """Owner of a buffer that is computed outside loop bodies: by a library call, a template, a concatenation."""
        if "MultiOutput" in leaf.node.inner:
            return self._item(leaf)
        values = self.known.values_of(leaf)
        named = [node for word in _targets_of(leaf.node) for node in self.fx.by_packet.get(word, ())]
        named += self.fx.fused_patterns
        free = (n for n in named if not self._owned.gives(n.name) and not self._called.gives(n.name))
        fitting = sorted(free, key=lambda n: self.fx.order[n.name])
        exact = next((n for n in fitting if values is not None and self.fx.reads_exactly(n.name, values)), None)
        found = [exact] if exact is not None else fitting[: len(fitting) == 1]
        if found:
            self.implements[leaf.name] = found[0].name
        holds = bool(leaf.buffer.mutations)
        return [n.name for n in found if holds or (n.shape is not None and fits(n, leaf.buffer.layout))]

    def _item(self, leaf: Leaf) -> list[str]:
        """One result of a call with several: the getitem with its number, on the node that the call implements."""
        source = next((self.implements[name] for name in leaf.loads if name in self.implements), None)
        if source is None:
            return []
        items = self.fx.items(source)
        index = self.hints.items.get(leaf.name)
        if not items:
            return [source]
        return [n for n in items if index is None or self.fx.nodes[n].args[1:2] == (str(index),)]


def _targets_of(leaf: DumpNode) -> list[str]:
    """The aten names that a kernel may stand for, underscores at their ends left out."""
    if "RandomSeeds" in leaf.inner:
        return ["inductor_seeds"]
    if "ConcatKernel" in leaf.inner:
        return ["cat"]
    if any("Template" in inner for inner in leaf.inner):
        return list(TEMPLATED)
    words = [part.strip("_") for part in (leaf.kernel or "").split(".")]
    return words + [alias for word in words for alias in _ALSO.get(word, ())]


_ALSO = {"bias_addmm": ("addmm",), "scatter_reduce": ("scatter_add", "scatter")}
"""Library calls that other targets are lowered to."""
