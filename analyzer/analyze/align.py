"""Finds whose value each buffer holds, from structure alone: what a stranger's dump with nothing but text allows.

Graph inputs have equal names in the IR and the FX graph. So, buffer by buffer, the candidates are the FX nodes that can
be computed from exactly the values that the body loads, with the buffer's shape and dtype; the body's operations then
tell them apart. What stays ambiguous stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.strides import load_offsets, offset_of
from analyzer.analyze.targets import TEMPLATED, is_getitem, is_view, mutates, packet, roots, scalars
from analyzer.model import DumpNode, FxNode, Layout, Size

Cost = tuple[int, int, bool, bool, bool]
"""Operations and constants that do not fit, then whether the lowering, the last operation and the value's making are unsure."""

_REDUCTIONS = frozenset({"reduction:sum", "reduction:prod", "reduction:max", "reduction:min", "reduction:any"})
_PASSES = 3
HELPER = "no FX node has this value: a helper of a lowering"


@dataclass
class Aligner:
    """Walks the buffers in dump order; `owner` starts with what better evidence has settled (its anchors).

    `allowed` restricts a buffer to the FX nodes that its kernel is known to compute, `items` are the result numbers of
    MultiOutput buffers, `helpers` are buffers known to hold no node's value, `returned` those
    that the graph returns (only they may hold a view's value, made dense for the caller), `implements` maps extern buffers to the node whose call they are (with several results, no
    buffer holds the node's value), `ambiguous` buffers to the several nodes that they may hold.
    """

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owner: dict[str, str]
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    helpers: Collection[str] = frozenset()
    returned: Collection[str] = frozenset()
    implements: dict[str, str] = field(default_factory=dict)
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Passes over the dump until nothing new is settled; later buffers build on the owners of earlier ones."""
        for _ in range(_PASSES):
            before = len(self.owner)
            for leaf in self.leaves.values():
                if leaf.name in self.helpers:
                    self.reasons[leaf.name] = HELPER
                elif leaf.name not in self.owner and leaf.name not in self.implements:
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

    def expanded(self, leaf: Leaf) -> Leaf:
        """The leaf with the buffers that it reads and that have no owner counted as part of its body."""
        loads, words, constants, queue = set(), Counter(leaf.words), Counter(leaf.constants), list(leaf.loads)
        seen = {leaf.name, *queue}
        vague = leaf.vague
        while queue:
            helper = self.leaves.get(name := queue.pop())
            if helper is None or name in self.owner or (helper.is_extern and not helper.is_partial):
                loads.add(name)
                continue
            words += helper.words
            vague |= helper.is_partial
            constants += helper.constants
            queue += [load for load in helper.loads if load not in seen]
            seen |= helper.loads
        return replace(leaf, loads=frozenset(loads), words=words, constants=constants, vague=vague)

    def values(self, loads: Iterable[str]) -> frozenset[str] | None:
        """The FX nodes whose values the loads are; None when that of a buffer is not known.

        Constants that lowering makes for itself (packed weights) have no node and are left out.
        """
        named = {load: self.value(load) for load in loads}
        lost = [load for load, name in named.items() if name is None and load in self.leaves]
        return None if lost else frozenset(name for name in named.values() if name is not None)

    def value(self, load: str) -> str | None:
        """The FX node whose value a buffer, a graph input or a constant of the module is."""
        name = self.owner.get(load) or self.fx.attributes.get(load, load)
        return name if name in self.fx.nodes else None

    def _computed(self, leaf: Leaf) -> list[str]:
        whole = self.expanded(leaf)
        values = self.values(whole.loads)
        if values is None:
            return []
        reachable = self.fx.computable(values) - values if values else self.fx.free
        scored = self._scored(whole, values, reachable)
        if not scored and whole.computes:
            scored = self._scored(whole, values, self._loosely(values))
        best = min((cost for cost, _, _ in scored), default=None)
        found = [name for cost, _, name in sorted(scored) if cost == best]
        return self._narrowed(leaf, found) if len(found) > 1 else found

    def _loosely(self, values: Collection[str]) -> Collection[str]:
        """Nodes computable if a lowering that we do not know may leave some of its arguments unread."""
        return self.fx.computable(values, loose=True) - set(values)

    def _scored(
        self, leaf: Leaf, values: Collection[str], names: Iterable[str]
    ) -> list[tuple[Cost, int, str]]:
        """The nodes that the leaf may hold, each with its cost and its place in the graph."""
        costs = ((self._cost(name, values, leaf), name) for name in names if self._may_own(leaf, name))
        return [(cost, self.fx.order[name], name) for cost, name in costs if cost is not None]

    def _narrowed(self, leaf: Leaf, found: list[str]) -> list[str]:
        """Equals told apart: by where in the loaded buffer they start, and by what the graph returns."""
        if all(name in self.allowed.get(leaf.name, ()) and is_view(self.fx.nodes[name]) for name in found):
            return found[-1:]
        for load in sorted(leaf.loads):
            found = self._starting_there(leaf, load, found)
        return found

    def _starting_there(self, leaf: Leaf, load: str, found: list[str]) -> list[str]:
        """Those whose elements start where the body's index into the loaded buffer does, as far as that is known."""
        value, body = self.value(load), leaf.node.body
        if body is None or value is None or len(found) < 2:
            return found
        layout = dict(leaf.node.layouts).get(load)
        seen = {None, *load_offsets(body, load)}
        return [name for name in found if offset_of(self.fx, name, value, layout) in seen] or found

    def _may_own(self, leaf: Leaf, name: str) -> bool:
        node = self.fx.nodes[name]
        if node.op != "call_function" or not node.live or name in self.owner.values() or self.fx.items(name):
            return False
        if name not in self.allowed.get(leaf.name, {name}) or (is_view(node) and leaf.name not in self.returned):
            return False
        parent = self.fx.parent(node)
        if writes_into(parent or node, leaf.buffer.mutations) != bool(leaf.buffer.mutations) or (is_getitem(node) and is_view(parent or node)):
            return False
        wanted = roots(node, parent) if not is_view(node) else None
        return fits(node, leaf.buffer.layout) and (wanted is None or leaf.root is None or leaf.root in wanted)

    def _cost(self, name: str, values: Collection[str], leaf: Leaf) -> Cost | None:
        """How badly operations and constants differ from what the cone's lowerings leave; None if a load is unused."""
        inside, reached = self.fx.cone(name, values)
        targets = {self.value(target) for target in leaf.buffer.mutations}
        if not all(value in reached or value in targets or self._is_by_product(value, inside) for value in values):
            return None
        words = 0 if leaf.vague else mismatch(self.fx, name, inside, leaf.words)
        if words:
            return None
        vague = any(self.fx.expected(inner).vocabulary is None for inner in inside)
        node = self.fx.nodes[name]
        unconfirmed = roots(node, self.fx.parent(node)) is None
        return words, stray_constants(self.fx, inside, leaf.constants), vague, unconfirmed, is_view(node)

    def _is_by_product(self, value: str, inside: Collection[str]) -> bool:
        """Another result of a node of the cone: a variance is computed from its mean."""
        parent = self.fx.parent(self.fx.nodes[value])
        return parent is not None and parent.name in inside

    # ---------------------------------------------------------------------------------------------- extern kernels

    def _opaque(self, leaf: Leaf) -> list[str]:
        """Owner of a buffer that is computed outside loop bodies: by a library call, a template, a concatenation."""
        if "MultiOutput" in leaf.node.inner:
            return self._item(leaf)
        values = self.values(self.expanded(leaf).loads)
        taken = {*self.owner.values(), *self.implements.values()}
        named = (node for word in _targets_of(leaf.node) for node in self.fx.by_packet.get(word, ()))
        fitting = sorted((n for n in named if n.name not in taken), key=lambda n: self.fx.order[n.name])
        exact = next((n for n in fitting if values is not None and self.fx.reads_exactly(n.name, values)), None)
        found = [exact] if exact is not None else fitting[: len(fitting) == 1]
        if found:
            self.implements[leaf.name] = found[0].name
        holds = bool(leaf.buffer.mutations)
        return [n.name for n in found if holds or (n.shape is not None and fits(n, leaf.buffer.layout))]

    def _item(self, leaf: Leaf) -> list[str]:
        """One result of a kernel with several: the getitem with its index, in a graph whose node the kernel implements."""
        source = next((self.implements[name] for name in leaf.loads if name in self.implements), None)
        if source is None:
            return []
        items = self.fx.items(source)
        if not items:
            return [source]
        index = self.items.get(leaf.name)
        return [n for n in items if index is None or self.fx.nodes[n].args[1:2] == (str(index),)]


def _targets_of(leaf: DumpNode) -> list[str]:
    """The aten names that this kernel may stand for."""
    if "RandomSeeds" in leaf.inner:
        return ["inductor_seeds"]
    if "ConcatKernel" in leaf.inner:
        return ["cat"]
    if any("Template" in inner for inner in leaf.inner):
        return list(TEMPLATED)
    words = [part.strip("_") for part in (leaf.kernel or "").split(".")]
    return words + [alias for word in words for alias in _ALSO.get(word, ())]


_ALSO = {"bias_addmm": ("addmm",), "scatter_reduce": ("scatter_add", "scatter"), "index_put": ("index_put",)}
"""Library calls that other targets are lowered to."""


def writes_into(node: FxNode, targets: Collection[str]) -> bool:
    """Whether the node's lowering may write into another buffer: in place, or as a scatter into a fresh copy."""
    scatters = "scatter" in packet(node.target) or packet(node.target).startswith(("index_put", "_unsafe_index_put"))
    return mutates(node) or (scatters and bool(targets))


def mismatch(fx: FxIndex, name: str, inside: Collection[str], words: Counter[str]) -> int:
    """Operations that the cone calls for and the body lacks, plus those that nothing in the cone explains."""
    paths = fx.paths(name, inside)
    least: Counter[str] = Counter()
    most: Counter[str] = Counter()
    vocabulary: set[str] | None = set()
    unmet = 0
    for inner in inside:
        expected = fx.expected(inner)
        unmet += bool(expected.any_of) and not expected.any_of & words.keys()
        for word, count in expected.required.items():
            least[word] += count if inner not in fx.free else 0  # constants may be folded
            most[word] += count * paths[inner]
        vocabulary = None if vocabulary is None or expected.vocabulary is None else vocabulary | expected.vocabulary
    if not any(word.startswith("reduction:") for word in words) and vocabulary is not None:
        vocabulary |= least.keys() if _REDUCTIONS & (least.keys() | vocabulary) else set()  # unrolled: repeated at will
    missing = sum((least - words).values())
    surplus = words - most
    extra = 0 if vocabulary is None else sum(count for word, count in surplus.items() if word not in vocabulary)
    return missing + extra + unmet


def stray_constants(fx: FxIndex, inside: Collection[str], constants: Counter[float]) -> int:
    """Scalar operands of the cone that the body does not mention: tells `x * 0.125` from `x * 1`."""
    wanted = {number for name in inside for number in scalars(fx.nodes[name])}
    return len(wanted - constants.keys())


def fits(node: FxNode, layout: Layout | None) -> bool:
    """Whether a buffer of this layout can hold the node's value; what is not printed does not speak against it."""
    if layout is None:
        return True
    same_dtype = None in (node.dtype, layout.dtype) or node.dtype == layout.dtype
    return same_dtype and (None in (node.shape, layout.size) or _same_shape(node.shape or (), layout.size or ()))


def _same_shape(left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return len(left) == len(right) and all(_plain(a) == _plain(b) for a, b in zip(left, right, strict=True))


def _plain(size: Size) -> Size:
    return size if isinstance(size, int) else size.replace(" ", "").strip("()")
