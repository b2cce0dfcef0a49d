"""What became of each post-grad FX node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from analyzer.analyze.bodies import Bodies
from analyzer.analyze.fit import fits
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.owners import Owners
from analyzer.analyze.targets import is_compute, is_getitem, is_view
from analyzer.facts import Evidence, Fate, NodeFact
from analyzer.model import FxNode, SourceSite


@dataclass(frozen=True)
class Fates:
    """Decides fates. `kernel_of` maps buffers to kernels, `source_ops` FX nodes to pre-grad names, `lines` those to
    lines of the program.

    `doubts` are buffers whose owner or body is not known: while there are any, a node without a trace is unknown.
    `leaves` are the buffers of the dump: others were dead before it was written. `lost` says why the buffers
    themselves are not all known (no IR dump, or a damaged one).
    """

    fx: FxIndex
    owners: Owners
    bodies: Bodies
    kernel_of: Mapping[str, str]
    source_ops: Mapping[str, tuple[str, ...]]
    doubts: tuple[str, ...]
    leaves: Mapping[str, Leaf]
    lines: Mapping[str, SourceSite]
    lost: str | None = None

    def all(self) -> tuple[NodeFact, ...]:
        """One fact per node, the output left out, in graph order."""
        computed_in = self.bodies.by_node()
        present = [(node, buffer) for buffer, node in self.owners.node.items() if buffer in self.leaves]
        owned = dict(reversed(present))
        calls = {node: buffer for buffer, node in self.owners.implements.items()}
        return tuple(
            self._fact(node, owned.get(node.name) or calls.get(node.name), computed_in.get(node.name, ()))
            for node in self.fx.nodes.values()
        )

    def _fact(self, node: FxNode, owner: str | None, bodies: tuple[str, ...]) -> NodeFact:
        alone = [b for b in bodies if b not in self.owners.node and self._is_all_of(node, b)]
        buffer = owner or (alone[-1] if alone else None)
        elsewhere = tuple(b for b in bodies if b != buffer and b not in alone)
        fate, reason = self._fate(node, buffer, elsewhere)
        if fate in (Fate.VIEW, Fate.FOLDED):
            elsewhere = ()
        places = ([buffer] if buffer else []) + list(elsewhere)
        return NodeFact(
            node=node,
            fate=fate,
            buffer=buffer,
            inlined_into=elsewhere,
            kernels=tuple(dict.fromkeys(self.kernel_of[b] for b in places if b in self.kernel_of)),
            source_ops=self.source_ops.get(node.name, ()),
            traced_line=self._traced_line(node.name),
            evidence=self._evidence(places) if fate in (Fate.REALIZED, Fate.INLINED) else Evidence.NONE,
            reason=reason,
        )

    def _traced_line(self, name: str) -> SourceSite | None:
        """The line of a pre-grad op; nodes of the pattern matcher have none of their own."""
        return next((self.lines[op] for op in self.source_ops.get(name, ()) if op in self.lines), None)

    def _is_all_of(self, node: FxNode, buffer: str) -> bool:
        """Whether a helper's body computes this node, or a part of its results, and nothing else."""
        computed = [name for name in self.bodies.nodes.get(buffer, ()) if is_compute(self.fx.nodes[name])]
        leaf = self.leaves.get(buffer)
        layout = leaf.buffer.layout if leaf else None
        return computed == [node.name] and (node.shape is None or layout is None or fits(node, layout))

    def _evidence(self, buffers: list[str]) -> Evidence:
        """The weakest of the places' evidence; structure alone says that a value is in one of several."""
        ranks = list(Evidence)
        found = (self.owners.evidence.get(b, Evidence.ALIGNMENT) for b in buffers)
        return max(found, key=ranks.index, default=Evidence.ALIGNMENT)

    def _fate(self, node: FxNode, buffer: str | None, elsewhere: tuple[str, ...]) -> tuple[Fate, str | None]:
        if node.op == "placeholder":
            return Fate.INPUT, None
        if node.op == "get_attr":
            return Fate.CONSTANT, None
        if buffer is not None:
            return Fate.REALIZED, None
        if node.name in self._candidates:
            return self._one_of_several(node)
        if not node.live:
            return Fate.FOLDED, "dead: no output needs it"
        if is_view(node) or (is_getitem(node) and self._selects_only(node)):
            return Fate.VIEW, None
        if elsewhere:
            return Fate.INLINED, None
        return self._traceless(node)

    @cached_property
    def _candidates(self) -> frozenset[str]:
        return frozenset(name for names in self.owners.ambiguous.values() for name in names)

    def _one_of_several(self, node: FxNode) -> tuple[Fate, str]:
        """For a node that one of several like buffers holds: realized for sure if there are buffers enough."""
        buffers = [buffer for buffer, names in self.owners.ambiguous.items() if node.name in names]
        rivals = {name for buffer in buffers for name in self.owners.ambiguous[buffer]}
        closed = all(set(self.owners.ambiguous[buffer]) == rivals for buffer in buffers)
        if closed and len(buffers) >= len(rivals):
            return Fate.REALIZED, f"in one of {', '.join(buffers)}: they cannot be told apart"
        return (
            Fate.UNKNOWN,
            f"may be the value of {', '.join(buffers)}: ambiguous with {', '.join(sorted(rivals - {node.name}))}",
        )

    @cached_property
    def implementing(self) -> frozenset[str]:
        """The nodes that library calls stand for."""
        return frozenset(self.owners.implements.values())

    def _selects_only(self, node: FxNode) -> bool:
        """A getitem on a view or on a library call picks one of several tensors that exist anyway."""
        parent = self.fx.parent(node)
        return parent is None or is_view(parent) or parent.name in self.implementing

    def _traceless(self, node: FxNode) -> tuple[Fate, str | None]:
        if node.shape is None and not is_getitem(node) and not self.fx.items(node.name):
            return Fate.FOLDED, "no tensor: the wrapper or a guard computes it"
        if self.lost:
            return Fate.UNKNOWN, self.lost
        if self.doubts:
            return (
                Fate.UNKNOWN,
                f"no trace found, but {len(self.doubts)} buffers are not attributed: {', '.join(self.doubts[:4])}",
            )
        return Fate.FOLDED, "no trace in the IR: a no-op or a constant"
