"""Finds whose value each buffer holds, from structure alone: what a stranger's dump with nothing but text allows.

Graph inputs have equal names in the IR and the FX graph. So, buffer by buffer, the candidates are the FX nodes that can
be computed from exactly the values that the body loads, with the buffer's shape and dtype; the body's operations then
tell them apart. What stays ambiguous stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from analyzer.analyze.fit import Cost, cost, fits, is_exact
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.known import Assignment, Known
from analyzer.analyze.leaves import Leaf, buffer_number
from analyzer.analyze.strides import is_relaid, load_offsets, offset_of
from analyzer.analyze.targets import TEMPLATED, UNFILLED, is_getitem, is_view, item_index, mutates, packet, scatters
from analyzer.model import DumpNode, FxNode

HELPER = "a helper of a lowering"
_NONE_FITS = "no FX node fits: a helper of a lowering, or an op whose lowering is not known here"
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
    holds that node's value), `ambiguous` buffers to the several nodes that they may hold, `made` buffers that are
    written into later to the node whose value they held at first.
    """

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owner: Assignment
    hints: Hints = Hints()
    implements: Assignment = field(default_factory=Assignment)
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._given = dict(self.owner)

    @cached_property
    def known(self) -> Known:
        """The same owners, for questions about loads."""
        return Known(self.fx, self.leaves, self.owner, self.implements)

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
        found = self._opaque(leaf) if leaf.is_extern else self._computed(leaf) or self._only_writer(leaf)
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
        elif before is not None and before != self._given.get(target):
            self.made.setdefault(target, before)
        elif mutates(node) and (arguments := self.fx.targets(node)):
            self.made.setdefault(target, arguments[0])

    @staticmethod
    def _is_older(target: str, writer: str) -> bool:
        """False for a name that the written buffer got only later (torch/_inductor/lowering.py, `mutate_to`)."""
        numbers = (buffer_number(target), buffer_number(writer))
        return numbers[0] is None or numbers[1] is None or numbers[0] < numbers[1]

    def _only_writer(self, leaf: Leaf) -> list[str]:
        """The one node that writes into the input that this buffer alone writes into."""
        for target in leaf.buffer.mutations if self._writes_alone(leaf) else ():
            for writer in self.fx.writers.get(target, ())[:1]:
                return sorted(self.fx.written(target)) or [writer]
        return []

    def _writes_alone(self, leaf: Leaf) -> bool:
        targets = set(leaf.buffer.mutations)
        alone = all(len(self.fx.writers.get(t, ())) == 1 and self._writes[t] == 1 for t in targets)
        return alone and len(targets) == 1

    @cached_property
    def _writes(self) -> Counter[str]:
        """For each input how many buffers write into it."""
        return Counter(target for leaf in self.leaves.values() for target in set(leaf.buffer.mutations))

    # ------------------------------------------------------------------------------------------------- loop bodies

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
        return [name] if relaid and alone and name in self.hints.allowed.get(leaf.name, {name}) else []

    def _costs(self, leaf: Leaf, values: Collection[str], names: Iterable[str]) -> dict[str, Cost]:
        targets = [self.known.value(target) for target in leaf.buffer.mutations]
        able = self.fx.ownable.intersection(names)
        free = (able - self.owner.nodes) | (able & self._said_to_write(leaf))
        allowed = free.intersection(self.hints.allowed.get(leaf.name, free))
        likely = (name for name in allowed if self._may_own(leaf, self.fx.nodes[name]))
        found = ((name, cost(self.fx, name, leaf, values, targets)) for name in likely)
        return {name: value for name, value in found if value is not None}

    def _may_own(self, leaf: Leaf, node: FxNode) -> bool:
        """What can be said without looking at all operations; the questions that most nodes fail come first."""
        if not self._ends_like(leaf, node) or not fits(node, leaf.buffer.layout):
            return False
        if self._is_concatenated(leaf) and not self._joins(node):
            return False
        return self._may_write(leaf, node) and self._is_own_value(leaf, node)

    def _before_write(self, leaf: Leaf, values: frozenset[str]) -> frozenset[str]:
        """The values that it loads, those made by its own write replaced by what the written buffers' bodies load."""
        said = self._said_to_write(leaf)
        written = (self.leaves[t] for t in leaf.buffer.mutations if t in self.leaves) if said else ()
        return (values - said).union(*(self.known.values(target.loads) or () for target in written))

    def _said_to_write(self, leaf: Leaf) -> frozenset[str]:
        """What better evidence gives to buffers that this one alone writes into: their value in the end."""
        return frozenset(self._given[t] for t in leaf.buffer.mutations if t in self._given and self._writes[t] == 1)

    def _may_write(self, leaf: Leaf, node: FxNode) -> bool:
        """A returned buffer that this one alone writes into holds what it writes: one of the values returned there."""
        last = (t for t in leaf.buffer.mutations if t in self.hints.returned and self._writes[t] == 1)
        return all(node.name in self.hints.allowed[target] for target in last)

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
        if leaf.name in self.hints.returned or self._is_concatenated(leaf):
            return True
        return not leaf.computes and view.name not in self.fx.outputs

    def _is_concatenated(self, leaf: Leaf) -> bool:
        """A part of a concatenation, written into its memory: one of its arguments, a view of one made dense.

        torch/_inductor/ir.py, `ConcatKernel.realize_into`.
        """
        whole = (self.leaves[name] for name in leaf.buffer.aliases if name in self.leaves)
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
        if leaf.is_unfilled:
            return self._unfilled(leaf)
        if call := next((self.implements[b.name] for b in leaf.node.buffers if b.name in self.implements), None):
            self.implements[leaf.name] = call  # another buffer of the same operation
            return self._left_by(call, leaf.buffer.mutations)
        fitting = list(islice(self._exact(leaf, self._uncalled(leaf)), 1)) or list(islice(self._uncalled(leaf), 2))
        fitting += self._rivals(leaf, fitting[0]) if len(fitting) == 1 else []
        found = fitting[: len(fitting) == 1]
        if found:
            self.implements[leaf.name] = found[0].name
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
        return sum(load not in self.leaves and self.known.value(load) is None for load in leaf.loads)

    def _unfilled(self, leaf: Leaf) -> list[str]:
        """`empty` and its kin get a buffer each, in order: known where no more of them fit than there are buffers."""
        calls = [node for target in UNFILLED for node in self.fx.by_packet.get(target, ())]
        fitting = sorted((n.name for n in calls if fits(n, leaf.buffer.layout)), key=self.fx.order.__getitem__)
        peers = [peer.name for peer in self.leaves.values() if peer.is_unfilled and self._is_like(peer, leaf)]
        return [fitting[peers.index(leaf.name)]] if len(fitting) == len(peers) else []

    @staticmethod
    def _is_like(leaf: Leaf, other: Leaf) -> bool:
        left, right = leaf.buffer.layout, other.buffer.layout
        return left is not None and right is not None and (left.dtype, left.size) == (right.dtype, right.size)

    def _left_by(self, call: str, written: Collection[str]) -> list[str]:
        """What a call leaves in the buffer written into: its value, or that of its results at the buffer's place."""
        if self.fx.nodes[call].shape is not None:
            return [call] if written else []
        values = {self.owner.get(name) for name in written}
        places = {index for index, name in enumerate(self.fx.targets(self.fx.nodes[call])) if name in values}
        return [name for name in self.fx.items(call) if {item_index(self.fx.nodes[name])} == places]

    def _uncalled(self, leaf: Leaf) -> Iterator[FxNode]:
        """The nodes that a library call may be and that no other one is, in order."""
        named = self.fx.named[tuple(_targets_of(leaf.node))]
        owned, called = self.owner.nodes - self._said_to_write(leaf), self.implements.nodes
        free = (n for n in named if n.name not in owned and n.name not in called)
        return (n for n in free if self._may_write(leaf, n)) if leaf.buffer.mutations else free

    def _rivals(self, leaf: Leaf, call: FxNode) -> list[FxNode]:
        """Nodes of other kinds that this call may as well be: they read the same, and there are too few calls for all.

        Calls enough are in the order of their nodes.
        """
        if len(self.fx.kinds[tuple(_targets_of(leaf.node))]) == 1:
            return []
        others = [n for n in self._uncalled(leaf) if packet(n.target) != packet(call.target)]
        rivals = list(self._exact(leaf, others)) if others else []
        open_calls = (o for o in self.leaves.values() if o.node.kernel == leaf.node.kernel and o.is_extern)
        waiting = sum(o.name not in self.implements for o in open_calls) if rivals else 0
        return rivals if waiting <= len(rivals) else []

    def _first_result(self, leaf: Leaf, call: FxNode) -> list[FxNode]:
        """What a call's own buffer holds: a template that has several results writes the first one itself."""
        items = [self.fx.nodes[name] for name in self.fx.items(call.name)] if leaf.is_partial else []
        return [item for item in items if item_index(item) == 0] or [call]

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
    if "UserDefinedTritonKernel" in leaf.inner:
        return ["triton_kernel_wrapper_mutation"]
    if "DeviceCopy" in leaf.inner:
        return ["device_put", "to_copy", "copy"]
    if any("Template" in inner for inner in leaf.inner):
        return list(TEMPLATED)
    words = [part.strip("_") for part in (leaf.kernel or "").split(".")]
    return words + [alias for word in words for alias in _ALSO.get(word, ())]


_JOINING = ("cat", "constant_pad_nd")
"""Targets that may be lowered to a concatenation."""

_ALSO = {"bias_addmm": ("addmm",), "scatter_reduce": ("scatter_add",)}
"""Library calls that other targets are lowered to."""
