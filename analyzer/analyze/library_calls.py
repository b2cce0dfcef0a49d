"""Which FX node a library call, a template or a concatenation is, and which buffers hold its results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from analyzer.analyze.fit import fits
from analyzer.analyze.known import Settled
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.targets import TEMPLATED, UNFILLED, item_index, packet
from analyzer.model import DumpNode, FxNode


class LibraryCalls:
    """Notes in `known.implements` which call is which node; whose value a buffer holds it only answers."""

    def __init__(self, known: Settled) -> None:
        self.known = known
        self.fx = known.fx

    def owners(self, leaf: Leaf) -> list[str]:
        """Owner of a buffer that is computed outside loop bodies: by a library call, a template, a concatenation."""
        if "MultiOutput" in leaf.node.inner:
            return self._item(leaf)
        if leaf.is_unfilled:
            return self._unfilled(leaf)
        called = self.known.implements
        if call := next((called[b.name] for b in leaf.node.buffers if b.name in called), None):
            called[leaf.name] = call  # another buffer of the same operation
            return self._left_by(call, leaf.buffer.mutations)
        fitting = list(islice(self._exact(leaf, self._uncalled(leaf)), 1)) or list(islice(self._uncalled(leaf), 2))
        fitting += self._rivals(leaf, fitting[0]) if len(fitting) == 1 else []
        found = fitting[: len(fitting) == 1]
        if found:
            called[leaf.name] = found[0].name
            found = self._first_result(leaf, found[0])
        holds = bool(leaf.buffer.mutations)
        return [n.name for n in found if n.shape is not None and (holds or fits(n, leaf.buffer.layout))]

    def _exact(self, leaf: Leaf, nodes: Iterable[FxNode]) -> Iterator[FxNode]:
        """Those of the nodes that read exactly what the call reads; none when that is not known."""
        values, packed = self.known.values_of(leaf), self._packed(leaf)
        return (n for n in nodes if values is not None and self.fx.reads_exactly(n.name, values, packed))

    def _packed(self, leaf: Leaf) -> int:
        """How many constants a call reads that no node gets: weights that lowering has packed anew.

        torch/_inductor/codegen/cpp_gemm_template.py, `CppGemmTemplate.prep_weight`.
        """
        return sum(load not in self.known.leaves and self.known.value(load) is None for load in leaf.loads)

    def _unfilled(self, leaf: Leaf) -> list[str]:
        """`empty` and its kin get a buffer each, in order: known where no more of them fit than there are buffers."""
        calls = [node for target in UNFILLED for node in self.fx.by_packet.get(target, ())]
        fitting = sorted((n.name for n in calls if fits(n, leaf.buffer.layout)), key=self.fx.order.__getitem__)
        peers = [peer.name for peer in self.known.leaves.values() if peer.is_unfilled and self._is_like(peer, leaf)]
        return [fitting[peers.index(leaf.name)]] if len(fitting) == len(peers) else []

    @staticmethod
    def _is_like(leaf: Leaf, other: Leaf) -> bool:
        left, right = leaf.buffer.layout, other.buffer.layout
        return left is not None and right is not None and (left.dtype, left.size) == (right.dtype, right.size)

    def _left_by(self, call: str, written: Collection[str]) -> list[str]:
        """What a call leaves in the buffer written into: its value, or that of its results at the buffer's place."""
        if self.fx.nodes[call].shape is not None:
            return [call] if written else []
        values = {self.known.owner.get(name) for name in written}
        places = {index for index, name in enumerate(self.fx.targets(self.fx.nodes[call])) if name in values}
        return [name for name in self.fx.items(call) if {item_index(self.fx.nodes[name])} == places]

    def _uncalled(self, leaf: Leaf) -> Iterator[FxNode]:
        """The nodes that a library call may be and that no other one is, in order."""
        named = self.fx.named[tuple(_targets_of(leaf.node))]
        owned, called = self.known.owner.nodes - self.known.said_to_write(leaf), self.known.implements.nodes
        free = (n for n in named if n.name not in owned and n.name not in called)
        return (n for n in free if self.known.may_write(leaf, n)) if leaf.buffer.mutations else free

    def _rivals(self, leaf: Leaf, call: FxNode) -> list[FxNode]:
        """Nodes of other kinds that this call may as well be: they read the same, and there are too few calls for all.

        Calls enough are in the order of their nodes.
        """
        if len(self.fx.kinds[tuple(_targets_of(leaf.node))]) == 1:
            return []
        others = [n for n in self._uncalled(leaf) if packet(n.target) != packet(call.target)]
        rivals = list(self._exact(leaf, others)) if others else []
        open_calls = (o for o in self.known.leaves.values() if o.node.kernel == leaf.node.kernel and o.is_extern)
        waiting = sum(o.name not in self.known.implements for o in open_calls) if rivals else 0
        return rivals if waiting <= len(rivals) else []

    def _first_result(self, leaf: Leaf, call: FxNode) -> list[FxNode]:
        """What a call's own buffer holds: a template that has several results writes the first one itself."""
        items = [self.fx.nodes[name] for name in self.fx.items(call.name)] if leaf.is_partial else []
        return [item for item in items if item_index(item) == 0] or [call]

    def _item(self, leaf: Leaf) -> list[str]:
        """One result of a call with several: the getitem with its number, on the node that the call implements."""
        source = next((self.known.implements[name] for name in leaf.loads if name in self.known.implements), None)
        if source is None:
            return []
        items = self.fx.items(source)
        index = self.known.hints.items.get(leaf.name)
        if not items:
            return [source]
        return [n for n in items if index is None or self.fx.nodes[n].args[1:2] == (str(index),)]


def _targets_of(leaf: DumpNode) -> list[str]:
    """The aten names that a kernel may stand for, underscores at their ends left out."""
    if "RandomSeeds" in leaf.inner:
        return ["inductor_seeds"]
    if "ConcatKernel" in leaf.inner:
        return ["cat"]
    if "UserDefinedTritonKernel" in leaf.inner:
        return ["triton_kernel_wrapper_mutation"]
    if "DeviceCopy" in leaf.inner:
        return ["device_put", "to_copy", "copy"]
    if any("Template" in inner for inner in leaf.inner):
        return list(TEMPLATED)
    words = [part.strip("_") for part in (leaf.kernel or "").split(".")]
    return words + [alias for word in words for alias in _ALSO.get(word, ())]


_ALSO = {"bias_addmm": ("addmm",), "scatter_reduce": ("scatter_add",)}
"""Library calls that other targets are lowered to."""
