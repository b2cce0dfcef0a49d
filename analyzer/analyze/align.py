"""Finds whose value each buffer holds, from structure alone: what a stranger's dump with nothing but text allows.

Graph inputs have equal names in the IR and the FX graph. So, buffer by buffer, the candidates are the FX nodes that can
be computed from exactly the values that the body loads, with the buffer's shape and dtype; the body's operations then
tell them apart. What stays ambiguous stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.analyze.fit import fits
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.known import Assignment, Hints, Settled
from analyzer.analyze.leaves import Leaf, buffer_number
from analyzer.analyze.library_calls import LibraryCalls
from analyzer.analyze.loop_bodies import LoopBodies
from analyzer.analyze.targets import mutates, scatters

HELPER = "a helper of a lowering"
_NONE_FITS = "no FX node fits: a helper of a lowering, or an op whose lowering is not known here"
_PASSES = 3


class Aligner:
    """Walks the buffers in dump order; `owner` starts with what better evidence has settled.

    `implements` maps the buffers of library calls to the node whose call they are (with several results, no buffer
    holds that node's value), `ambiguous` buffers to the several nodes that they may hold, `made` buffers that are
    written into later to the node whose value they held at first.
    """

    def __init__(self, fx: FxIndex, leaves: Mapping[str, Leaf], given: Mapping[str, str], hints: Hints) -> None:
        self.known = Settled(fx, leaves, Assignment(given), Assignment(), hints, given)
        self.fx, self.leaves = fx, leaves
        self.owner, self.implements = self.known.owner, self.known.implements
        self.ambiguous: dict[str, tuple[str, ...]] = {}
        self.made: dict[str, str] = {}
        self.reasons: dict[str, str] = dict.fromkeys(hints.helpers, HELPER)
        self._loops, self._calls = LoopBodies(self.known), LibraryCalls(self.known)

    def run(self) -> None:
        """Passes over the dump until nothing new is settled; later buffers build on the owners of earlier ones."""
        for _ in range(_PASSES):
            before = len(self.owner)
            for leaf in self.leaves.values():
                settled = (self.owner, self.implements, self.known.hints.helpers)
                if not any(leaf.name in known for known in settled):
                    self._settle(leaf)
            if len(self.owner) == before:
                break
        self._doubt_overwritten()

    def _doubt_overwritten(self) -> None:
        """A buffer that another one writes into holds that one's value in the end, known or not."""
        for leaf in self.leaves.values():
            for target in leaf.buffer.mutations if not self._has_value(leaf) else ():
                for written in self._with_its_call(target):
                    self._doubt(written, f"{leaf.name} writes into it, and which node that does is not known")

    def _has_value(self, leaf: Leaf) -> bool:
        """Whether it is known what a buffer writes into others: not of calls with several results, unless which."""
        call = self.fx.nodes.get(self.implements.get(leaf.name, ""))
        return call is not None and not self.fx.items(call.name)

    def _doubt(self, name: str, reason: str) -> None:
        if name in self.owner and name in self.leaves:
            del self.owner[name]
            self.reasons[name] = reason

    def _with_its_call(self, name: str) -> list[str]:
        """The buffer, and the call whose one result it is: torch gives both the same origin node.

        torch/_inductor/graph.py, `GraphLowering.run_node` (ir.py, `assign_origin_node`): "not really multi-output".
        """
        leaf = self.leaves.get(name)
        calls = leaf.loads if leaf is not None and "MultiOutput" in leaf.node.inner else ()
        return [name, *(c for c in calls if c in self.implements and not self.fx.items(self.implements[c]))]

    def _settle(self, leaf: Leaf) -> None:
        found = self._calls.owners(leaf) if leaf.is_extern else self._loops.owners(leaf)
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
            self.reasons[leaf.name] = _NONE_FITS if self.fx.nodes else "no FX graph was read"

    def _mutated(self, leaf: Leaf, node: str) -> None:
        """A loop or call that writes into another buffer: from here on, that buffer holds the node's value."""
        self.implements[leaf.name] = node
        self.reasons[leaf.name] = f"writes the value of {node} into {', '.join(leaf.buffer.mutations)}"
        for target in leaf.buffer.mutations:
            written = self.leaves.get(target)
            if written and self._is_older(target, leaf.name) and fits(self.fx.nodes[node], written.buffer.layout):
                self._note_made(target, node)
                for name in self._with_its_call(target):
                    self.owner[name] = self.fx.last_alias(node)

    def _note_made(self, target: str, writer: str) -> None:
        """An in-place node takes its argument's buffer as it is; others write into a copy made in their lowering.

        torch/_inductor/lowering.py, `index_put_` and `index_put`.
        """
        node, before = self.fx.nodes[writer], self.owner.get(target)
        if scatters(node) and not mutates(node):
            self.made[target] = writer
        elif before is not None and before != self.known.given.get(target):
            self.made.setdefault(target, before)
        elif mutates(node) and (arguments := self.fx.targets(node)):
            self.made.setdefault(target, arguments[0])

    @staticmethod
    def _is_older(target: str, writer: str) -> bool:
        """False for a name that the written buffer got only later (torch/_inductor/lowering.py, `mutate_to`)."""
        numbers = (buffer_number(target), buffer_number(writer))
        return numbers[0] is None or numbers[1] is None or numbers[0] < numbers[1]
