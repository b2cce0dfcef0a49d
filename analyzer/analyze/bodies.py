"""Which FX nodes each loop body computes: its origins, inlined nodes included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.known import Known
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.owners import Owners
from analyzer.analyze.targets import MATMULS, is_foreach, is_getitem, is_view, item_index, packet
from analyzer.model import FxNode

Nodes = frozenset[str]


@dataclass(frozen=True)
class Bodies:
    """For each buffer the FX nodes on the way from what its body loads to its value, views and getitems included.

    `claimed` are further nodes that Inductor counts among the origins without computing them there: an IR node gathers
    the origins of its arguments when it is made (torch/_inductor/graph.py, `gather_origins`), and values that get
    buffers only later stay among them. `returned` are the getitems of the graph's output at which buffers were made.
    """

    nodes: Mapping[str, Nodes]
    claimed: Mapping[str, Nodes]
    with_views: bool
    returned: Mapping[str, str] = field(default_factory=dict)

    def origins(self, buffer: str, fx: FxIndex) -> tuple[str, ...]:
        """Those that Inductor counts as origins, in graph order.

        A view that changes nothing makes no IR node, and a getitem only when its result gets a buffer there.
        """
        selected = self.returned.get(buffer)
        known = self.nodes.get(buffer, frozenset()) | self.claimed.get(buffer, frozenset())
        if not self.with_views:
            known = self._gathered(known, fx) if selected is None else frozenset({selected})
        found = [n for n in known if n in fx.nodes and (n == selected or self._leaves_ir(fx, fx.nodes[n]))]
        return tuple(sorted(found, key=fx.order.__getitem__))

    def _gathered(self, known: Nodes, fx: FxIndex) -> Nodes:
        """What is left up to torch 2.8: `gather_origins` asked only the arguments themselves, and only for loops.

        It looked into no list, and a view hid the loops below it.
        """
        read = {source for name in known & fx.nodes.keys() for source in fx.value_inputs[name]}
        lists = {parent.name for name in read if (parent := fx.parent(fx.nodes[name])) is not None}
        found = set(known - read - lists)
        queue = [name for name in found if name in fx.nodes]
        while queue:
            for name in fx.loops_of(queue.pop()):
                if name in known and name not in found:
                    found.add(name)
                    queue.append(name)
        return frozenset(found)

    def _leaves_ir(self, fx: FxIndex, node: FxNode) -> bool:
        if is_view(node):
            return self.with_views and not fx.changes_nothing(node)
        return not is_getitem(node)

    def by_node(self) -> Mapping[str, tuple[str, ...]]:
        """For each FX node the buffers whose bodies compute it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for buffer, nodes in self.nodes.items():
            for node in nodes:
                found[node].append(buffer)
        return {node: tuple(buffers) for node, buffers in found.items()}


@dataclass(frozen=True)
class BodyFinder:
    """`computed` limits a buffer to what its kernel computes; `alone` are buffers that are all that one computes."""

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owners: Owners
    computed: Mapping[str, Nodes] = field(default_factory=dict)
    alone: Collection[str] = frozenset()

    def find(self, *, with_views: bool) -> Bodies:
        """The bodies of all buffers. `with_views`: this torch counts views among origins."""
        cones = dict(self._owned_cones())
        self._add_helpers(cones)
        cones = {name: cones[name] for name in (*self.leaves, *cones) if name in cones}
        earlier = {name: self._done_by_helpers(name, cones) for name in cones}
        claims = {name: claim | earlier[name] for name, claim in self._claims(cones).items()}
        return Bodies(
            nodes={name: self._limited(name, cone) - earlier[name] for name, cone in cones.items()},
            claimed={name: claim & self.computed.get(name, claim) for name, claim in claims.items()},
            with_views=with_views,
            returned=dict(self._returned()),
        )

    def _returned(self) -> Iterator[tuple[str, str]]:
        """Buffers made where the graph's output takes a result that was inlined until then.

        torch/_inductor/graph.py, `GraphLowering.run_node` (`result.realize()` of what the output uses).
        """
        for name, node in self.owners.node.items():
            taken = is_getitem(self.fx.nodes[node]) and node in self.fx.outputs
            if taken and not self._is_reduced(self.leaves.get(name)) and not self._is_made_at_once(node):
                yield name, node

    @staticmethod
    def _is_reduced(leaf: Leaf | None) -> bool:
        """What no other body can inline."""
        return leaf is None or leaf.is_extern or (leaf.root or "").startswith(("reduction:", "scan", "sort"))

    def _limited(self, name: str, cone: Nodes) -> Nodes:
        """The cone as far as the kernel is known to compute it; getitems are never listed there."""
        listed = self.computed.get(name)
        if listed is None:
            return cone
        selected = frozenset(node for node in cone if is_getitem(self.fx.nodes[node]))
        return selected | (listed if name in self.alone else cone & listed)

    @cached_property
    def known(self) -> Known:
        """The owners, for questions about loads."""
        return Known(self.fx, self.leaves, self.owners.node, self.owners.implements)

    @cached_property
    def owned(self) -> Nodes:
        """The FX nodes that have a buffer."""
        return frozenset(self.owners.node.values())

    @cached_property
    def holder(self) -> Mapping[str, str]:
        """For each FX node that has a buffer the last one that holds its value."""
        return {node: buffer for buffer, node in self.owners.node.items()}

    @cached_property
    def readers(self) -> Mapping[str, list[str]]:
        """For each buffer those whose bodies load it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for leaf in self.leaves.values():
            for load in leaf.loads:
                found[load].append(leaf.name)
        return found

    # ---------------------------------------------------------------------------------------- buffers with a node

    def _owned_cones(self) -> Iterator[tuple[str, Nodes]]:
        for name, node in self.owners.node.items():
            leaf = self.leaves.get(name)
            made = self.owners.made.get(name, node)
            yield name, frozenset({node}) if leaf is None or leaf.is_extern else self._cone_of(leaf, made)

    def _cone_of(self, leaf: Leaf, node: str) -> Nodes:
        """The nodes that compute `node` out of the values that the leaf loads.

        A buffer that a scatter writes to later holds that node's value: then what it loads tells nothing, and other
        buffers bound the search.
        """
        values = self.known.values_of(leaf)
        inside, reached = self._reach(leaf, node, values or self.owned - {node})
        if values is not None and not values <= reached:
            inside = self._reach(leaf, node, self.owned - {node})[0]
        return self._with_lists(inside)

    def _reach(self, leaf: Leaf, node: str, values: Nodes) -> tuple[set[str], set[str]]:
        """`FxIndex.cone`, of one element where a foreach op writes into lists of inputs."""
        writer = self.fx.nodes[node]
        if not (is_foreach(writer) and leaf.buffer.mutations):
            return self.fx.cone(node, values)
        index = self.fx.targets(writer).index(leaf.buffer.mutations[0])
        starts = frozenset(self.fx.elements(writer, index))
        parts = [self.fx.cone(start, values) for start in starts - values]
        inside = {node}.union(*(inside for inside, _ in parts))
        return inside, set(starts & values).union(*(reached for _, reached in parts))

    def origins_of(self, node: str, values: Collection[str], *, with_views: bool) -> tuple[str, ...]:
        """The origins of a buffer that no dump has: of what computes a node out of known values."""
        cone = self._with_lists(self.fx.cone(node, values)[0])
        return Bodies({node: cone}, {}, with_views).origins(node, self.fx)

    def _with_lists(self, inside: Collection[str]) -> Nodes:
        """The calls among the nodes, with the foreach ops whose elements they are."""
        parents = (self.fx.parent(self.fx.nodes[name]) for name in inside)
        lists = {parent.name for parent in parents if parent is not None and is_foreach(parent)}
        return self._calls_in({*inside, *lists})

    def _calls_in(self, names: Collection[str]) -> Nodes:
        return frozenset(name for name in names if self.fx.nodes[name].op == "call_function")

    # ------------------------------------------------------------------------------------- helpers and mutations

    def _add_helpers(self, cones: dict[str, Nodes]) -> None:
        """A helper computes what its readers' cones can compute from the helper's loads alone; readers come first."""
        for leaf in reversed(list(self.leaves.values())):
            values = self.known.values_of(leaf) or frozenset()
            call = self.owners.implements.get(leaf.name)
            if call is not None:
                cones[leaf.name] = frozenset({call}) if leaf.is_extern else self._cone_of(leaf, call)
            elif leaf.name in self.owners.ambiguous and not leaf.is_extern:
                choices = [self._cone_of(leaf, node) for node in self.owners.ambiguous[leaf.name]]
                cones[leaf.name] = choices[0].intersection(*choices)
            elif leaf.name not in self.owners.node and not leaf.is_extern:
                readers = self.readers.get(leaf.name, ())
                calls = frozenset(self.owners.implements[r] for r in readers if r in self.owners.implements)
                wanted = {node for reader in readers for node in cones.get(reader, ())}
                cones[leaf.name] = calls | self._first_part(leaf, wanted | self._arguments(calls), values)

    def _done_by_helpers(self, name: str, cones: Mapping[str, Nodes]) -> Nodes:
        """What a body gets from the helpers that it loads and cannot compute out of its other loads.

        A helper holds a part of the last node that it computes (one sum of a variance): the body goes on with that.
        """
        leaf = self.leaves.get(name)
        helpers = [load for load in leaf.loads if load in cones and not self._holds_value(load)] if leaf else []
        values = self.known.values(load for load in leaf.loads if load not in helpers) if leaf and helpers else None
        if values is None:
            return frozenset()
        before = frozenset[str]().union(*(self._all_but_last(cones[helper]) for helper in helpers))
        return frozenset(node for node in before - self.fx.computable(values) if self.fx.value_inputs[node])

    def _holds_value(self, buffer: str) -> bool:
        return buffer in self.owners.node or buffer in self.owners.implements

    def _all_but_last(self, cone: Nodes) -> Nodes:
        """The nodes of a cone that others of it read."""
        return frozenset(source for node in cone for source in self.fx.value_inputs[node]) & cone

    def _arguments(self, calls: Nodes) -> set[str]:
        """What lies between the arguments of library calls and the next values that have buffers."""
        return {node for call in calls for node in self.fx.cone(call, self.owned - calls)[0]} - calls

    def _first_part(self, leaf: Leaf, wanted: Collection[str], values: Collection[str]) -> Nodes:
        """Of what the readers need, the part up to the node whose lowering made the helper.

        A lowering makes helpers when one FX node needs several loops (variance, split reductions): that node is the
        first one whose operations include the helper's last. A plain copy is made for the call that reads it.
        """
        possible = sorted(set(wanted) & (self.fx.computable(values) - set(values)), key=self.fx.order.__getitem__)
        cones = [self.fx.cone(name, values)[0] for name in possible if leaf.computes and self._ends_in(name, leaf)]
        words = self.known.expanded(leaf).words
        whole = (cone for cone in cones if all(self.fx.expected(name).required.keys() <= words.keys() for name in cone))
        return frozenset(next(whole, cones[0] if cones else possible))

    def _ends_in(self, name: str, leaf: Leaf) -> bool:
        """Whether the last operation of a helper may be one of the node's lowering."""
        root, expected = (leaf.root or "").partition(".")[0], self.fx.expected(name)
        return root in expected.required or expected.vocabulary is None or root in expected.vocabulary

    # ------------------------------------------------------------------------------------------ more than is there

    def _claims(self, cones: Mapping[str, Nodes]) -> dict[str, Nodes]:
        claims = dict(self._of_copies())
        for name in cones:
            late = [cones[base] | claims.get(base, frozenset()) for base in self._realized_late(name, cones[name])]
            claims[name] = claims.get(name, frozenset()).union(*late)
        return claims

    def _realized_late(self, name: str, cone: Nodes) -> Iterator[str]:
        """Buffers that the body reads through a node made when their value had none yet, the value's only reader.

        A view with several readers: they, not the value, called for the buffer. A copy into an input: it did.
        """
        for reader in cone:
            for base in self.fx.value_inputs[reader]:
                buffer = self.holder.get(base, name)
                leaf = self.leaves.get(buffer)
                if leaf is not None and not leaf.is_extern and self._called_for_by(reader, base) and buffer != name:
                    yield buffer

    def _called_for_by(self, reader: str, base: str) -> bool:
        node = self.fx.nodes[reader]
        shared_view = is_view(node) and len(self.fx.readers.get(reader, ())) > 1
        late = shared_view or packet(node.target) == "copy_"
        return late and self.fx.readers.get(base) == (reader,) and not self._is_made_at_once(base)

    def _is_made_at_once(self, item: str) -> bool:
        """A result that gets its buffer while its node is lowered: a mean of var_mean, one of a foreach op on a GPU.

        torch/_inductor/lowering.py, `var_mean_sum_`, `make_foreach_pointwise` (`register_operation_list`).
        """
        node = self.fx.nodes[item]
        parent, leaf = self.fx.parent(node), self.leaves.get(self.holder.get(item, ""))
        if parent is None or leaf is None or leaf.buffer.layout is None:
            return False
        of_group = is_foreach(parent) and leaf.buffer.layout.device != "cpu"
        return of_group or (packet(parent.target) == "var_mean" and item_index(node) == 1)

    def _of_copies(self) -> Iterator[tuple[str, Nodes]]:
        """Copies that Inductor makes for a library call: the call, and what its other arguments are computed from."""
        made_for = {leaf.name: self._only_call(leaf) for leaf in self.leaves.values() if not leaf.is_extern}
        arguments: defaultdict[str | None, list[str]] = defaultdict(list)
        for name, call in made_for.items():
            arguments[call].append(name)
        for name, call in made_for.items():
            if call is not None and self._is_uncounted_copy(name, call):
                args = (self.owners.node.get(other) for other in arguments[call])
                late = frozenset(arg for arg in args if arg is not None)
                yield name, self._calls_in(self.fx.cone(call, self.owned - late - {call})[0])

    def _only_call(self, leaf: Leaf) -> str | None:
        """The library call that alone reads a buffer: its value was not realized before that call was lowered."""
        calls = {self.owners.implements.get(reader) for reader in self.readers.get(leaf.name, ())}
        return next(iter(calls)) if len(calls) == 1 and leaf.name not in self.owners.implements else None

    def _is_uncounted_copy(self, name: str, call: str) -> bool:
        """A copy made while the call was lowered, for the layout that it needs; matmuls take values as they are.

        Into a concatenation's memory views are copied together with what computes them.
        """
        owner, target = self.owners.node.get(name), packet(self.fx.nodes[call].target)
        viewed = owner is not None and is_view(self.fx.nodes[owner])
        if self.leaves[name].computes:
            return viewed and target == "cat"
        copied = owner is None or viewed or packet(self.fx.nodes[owner].target) == "clone"
        return copied and target not in MATMULS
