"""The post-grad FX graph, arranged for questions about where values come from."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from analyzer.analyze.lowerings import Expectation, expectation, reduces, roots, scalars
from analyzer.analyze.targets import (
    is_foreach,
    is_getitem,
    is_inlined,
    is_view,
    item_index,
    may_change_nothing,
    mutates,
    packet,
    reads_values,
)
from analyzer.model import FxNode, Size

_UNROLLED_BELOW = 8
_NAME = re.compile(r"[A-Za-z_]\w*")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class FxIndex:
    """Live nodes of one graph by name. `value_inputs` are the inputs whose elements a node reads."""

    all_nodes: tuple[FxNode, ...]
    outputs: tuple[str | None, ...]

    @cached_property
    def nodes(self) -> Mapping[str, FxNode]:
        """Every node but the output, by name, in graph order."""
        return {node.name: node for node in self.all_nodes if node.op != "output"}

    @cached_property
    def value_inputs(self) -> Mapping[str, tuple[str, ...]]:
        """For each node the inputs whose values it reads, repeats kept."""
        return {name: self._value_inputs(node) for name, node in self.nodes.items()}

    def _value_inputs(self, node: FxNode) -> tuple[str, ...]:
        if node.op != "call_function" or not reads_values(node):
            return ()
        if (parent := self.parent(node)) is not None and is_foreach(parent):
            return self.elements(parent, item_index(node))
        inputs = tuple(name for name in node.inputs if name in self.nodes)
        return inputs[1:] if packet(node.target) in ("copy", "copy_") and len(inputs) > 1 else inputs

    def elements(self, foreach: FxNode, index: int) -> tuple[str, ...]:
        """The arguments of one element of a foreach op: that of each list, and all that is no list."""
        lists = [[n for n in _NAME.findall(text) if n in self.nodes] for text in foreach.args]
        picked = [
            names[index : index + 1] if text.startswith("[") else names
            for text, names in zip(foreach.args, lists, strict=True)
        ]
        return tuple(name for names in picked for name in names)

    def targets(self, node: FxNode) -> tuple[str, ...]:
        """What a mutating node writes into: its first argument, or the elements of that, views looked through."""
        names = _NAME.findall(node.args[0]) if node.args else ()
        return tuple(self._viewed(name) for name in names if name in self.nodes)

    def _viewed(self, name: str) -> str:
        while is_view(self.nodes[name]) and self.nodes[name].inputs:
            name = self.nodes[name].inputs[0]
        return name

    @cached_property
    def writers(self) -> Mapping[str, tuple[str, ...]]:
        """For each graph input the nodes that write into it, in graph order."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            for target in self.targets(node) if node.op == "call_function" and mutates(node) else ():
                if self.is_tensor_input(target):
                    found[target].append(node.name)
        return {target: tuple(names) for target, names in found.items()}

    def written(self, target: str) -> frozenset[str]:
        """The nodes whose value is what was written into a graph input."""
        writers = [self.nodes[name] for name in self.writers.get(target, ())]
        return frozenset(name for writer in writers for name in self._results_in(writer, target))

    def _results_in(self, writer: FxNode, target: str) -> Iterable[str]:
        items = self.items(writer.name)
        index = self.targets(writer).index(target)
        return (name for name in items if item_index(self.nodes[name]) == index) if items else (writer.name,)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """For each module attribute (a frozen parameter, a constant) the node that gets it."""
        attributes = [node for node in self.nodes.values() if node.op == "get_attr"]
        return {node.target.removeprefix("self."): node.name for node in attributes}

    def expected(self, name: str) -> Expectation:
        """What computing the node leaves in a loop body."""
        return self._expected[name]

    @cached_property
    def _expected(self) -> Mapping[str, Expectation]:
        return _Found(lambda name: expectation(self.nodes[name], self.parent(self.nodes[name])))

    @cached_property
    def roots(self) -> Mapping[str, frozenset[str] | None]:
        """For each node the operations that may produce its value in a body; None when anything may."""
        return _Found(lambda name: roots(self.nodes[name], self.parent(self.nodes[name])))

    @cached_property
    def scalars(self) -> Mapping[str, Counter[float]]:
        """For each node the numbers among its operands."""
        return _Found(lambda name: scalars(self.nodes[name]))

    @cached_property
    def ownable(self) -> frozenset[str]:
        """Live calls that stand for one value, which a buffer may hold."""
        calls = (n for n in self.nodes.values() if n.live and (n.op == "call_function" or is_inlined(n)))
        return frozenset(node.name for node in calls if not self.items(node.name))

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """For each node the live nodes that read its value."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name, node in self.nodes.items():
            for source in dict.fromkeys(self.value_inputs[name]) if node.live else ():
                found[source].append(name)
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def order(self) -> Mapping[str, int]:
        """Position of each node in the graph."""
        return {name: position for position, name in enumerate(self.nodes)}

    @cached_property
    def free(self) -> frozenset[str]:
        """Nodes whose value needs no load: symbols, constants made by `full` or `iota`, and what follows from them."""
        roots = [n.name for n in self.nodes.values() if n.op == "call_function" and not self.value_inputs[n.name]]
        symbols = [n.name for n in self.nodes.values() if n.op == "placeholder" and n.shape is None and _is_symbol(n)]
        constants = [node.name for node in self.nodes.values() if is_inlined(node)]
        return frozenset(self._closure([*roots, *symbols, *constants], self.value_inputs))

    @cached_property
    def _needs(self) -> Mapping[str, frozenset[str]]:
        """For each node the values that it reads and that are not free."""
        return {name: frozenset(inputs) - self.free for name, inputs in self.value_inputs.items()}

    def computable(self, values: Iterable[str], *, loose: bool = False) -> set[str]:
        """All nodes that can be computed from these values (and constants) alone, the values included.

        `loose`: where a node's lowering is not known, one argument is enough (a pooling's backward reads no input).
        """
        return self._closure(values, self._needs, loose=loose)

    def _closure(self, values: Iterable[str], needs: Mapping[str, Iterable[str]], *, loose: bool = False) -> set[str]:
        have = set(values)
        queue = list(have)
        while queue:
            for reader in self.readers.get(queue.pop(), ()):
                if reader not in have and (
                    have.issuperset(needs[reader]) or (loose and self.expected(reader).vocabulary is None)
                ):
                    have.add(reader)
                    queue.append(reader)
        return have

    def cone(self, node: str, values: Collection[str]) -> tuple[set[str], set[str]]:
        """What computes `node` out of `values`: the nodes on the way (itself included), and the values reached."""
        inside, reached, queue = {node}, set(), [node]
        while queue:
            for source in self.value_inputs[queue.pop()]:
                if source in values:
                    reached.add(source)
                elif source not in inside:
                    inside.add(source)
                    queue.append(source)
        return inside, reached

    def reads_exactly(self, node: str, values: Collection[str], packed: int = 0) -> bool:
        """Whether `node` can be computed out of all of `values` and nothing else; ends at the first other input.

        `packed` attributes of the module may be read besides, under names that the graph does not know.
        """
        inside, reached, queue = {node}, set(), [node]
        while queue:
            if self.is_tensor_input(name := queue.pop()):
                packed -= 1
                if packed < 0 or self.nodes[name].op == "placeholder":
                    return False
            for source in self.value_inputs[name]:
                if source in values:
                    reached.add(source)
                elif source not in inside:
                    inside.add(source)
                    queue.append(source)
        return len(reached) == len(values)

    def paths(self, node: str, inside: Collection[str]) -> Mapping[str, int]:
        """How often each node of a cone is evaluated when nothing is shared: the number of paths to it."""
        counts = defaultdict(int, {node: 1})
        for name in sorted(inside, key=self.order.__getitem__, reverse=True):
            for source in self.value_inputs[name]:
                if source in inside:
                    counts[source] = min(counts[source] + counts[name] * self.unrolled[name], 1_000)
        return counts

    @cached_property
    def unrolled(self) -> Mapping[str, int]:
        """How many elements a node's reduction is written out for; 1 where it stays a loop, or is none.

        torch/_inductor/ir.py, `Reduction.create`, with the default of `config.unroll_reductions_threshold`.
        """
        return _Found(lambda name: self._unrolled(self.nodes[name]))

    def _unrolled(self, node: FxNode) -> int:
        sources = self.value_inputs[node.name] if reduces(node) else ()
        read, made = (_elements(n.shape) for n in (self.nodes[sources[0]], node)) if sources else (0, 0)
        count = max(read // made, 1) if made else 1
        return count if count < _UNROLLED_BELOW and not (made == 1 and node.device == "cpu") else 1

    def parent(self, node: FxNode) -> FxNode | None:
        """The node that a getitem takes a result of."""
        return self.nodes.get(node.inputs[0]) if is_getitem(node) and node.inputs else None

    def view_chain(self, name: str) -> frozenset[str]:
        """The node and those below it as long as they only change the layout of one value."""
        chain = {name}
        while (
            (node := self.nodes.get(name)) is not None and is_view(node) and node.inputs and node.inputs[0] not in chain
        ):
            name = node.inputs[0]
            chain.add(name)
        return frozenset(chain & self.nodes.keys())

    def last_alias(self, name: str) -> str:
        """The last node that stands for the very same IR value.

        Lowering a view that changes nothing returns its argument, and `GraphLowering.run_node` then makes the view
        the value's origin node.
        """
        for reader in self.readers.get(name, ()):
            if self.changes_nothing(self.nodes[reader]):
                return self.last_alias(reader)
        return name

    def first_alias(self, name: str) -> str:
        """The node below views that change nothing: they stand for the same IR value."""
        while self.changes_nothing(self.nodes[name]):
            name = self.nodes[name].inputs[0]
        return name

    def loops_of(self, name: str) -> tuple[str, ...]:
        """The arguments that are no list and no view, seen through views that change nothing."""
        node = self.nodes[name]
        given = (text for text in (*node.args, *(text for _, text in node.kwargs)) if text in self.nodes)
        bases = (self.first_alias(text) for text in given)
        return tuple(base for base in bases if not is_view(self.nodes[base]))

    def changes_nothing(self, view: FxNode) -> bool:
        """A view with its argument's shape: its lowering returns the argument."""
        base = self.nodes.get(view.inputs[0]) if is_view(view) and view.inputs else None
        same = base is not None and view.shape is not None and view.shape == base.shape
        return same and may_change_nothing(view)

    @cached_property
    def _items(self) -> Mapping[str, tuple[str, ...]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            if is_getitem(node) and node.inputs:
                found[node.inputs[0]].append(node.name)
        return {name: tuple(items) for name, items in found.items()}

    def items(self, name: str) -> tuple[str, ...]:
        """The getitems that take the node's results."""
        return self._items.get(name, ())

    def is_tensor_input(self, name: str) -> bool:
        """A placeholder or attribute that a kernel would have to load."""
        node = self.nodes.get(name)
        return node is not None and node.op in ("placeholder", "get_attr") and not _is_symbol(node)

    @cached_property
    def fused_patterns(self) -> tuple[FxNode, ...]:
        """Calls of a function of the pattern matcher itself (mkldnn's fused activations): no operator names them."""
        calls = (node for node in self.nodes.values() if node.op == "call_function" and node.live)
        return tuple(node for node in calls if "." not in node.target and "_fusion_fn" in node.target)

    @cached_property
    def by_packet(self) -> Mapping[str, tuple[FxNode, ...]]:
        """Live calls by the name of their operator, underscores at its ends left out, in order."""
        found: defaultdict[str, list[FxNode]] = defaultdict(list)
        for node in self.nodes.values():
            if node.live and node.op == "call_function":
                found[packet(node.target).strip("_")].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def named(self) -> Mapping[tuple[str, ...], tuple[FxNode, ...]]:
        """For some names of operators their live calls in order, and the fused patterns, which no operator names."""
        return _Found(self._named)

    def _named(self, packets: tuple[str, ...]) -> tuple[FxNode, ...]:
        calls = [node for name in packets for node in self.by_packet.get(name, ())]
        return tuple(sorted((*calls, *self.fused_patterns), key=lambda node: self.order[node.name]))

    @cached_property
    def kinds(self) -> Mapping[tuple[str, ...], frozenset[str]]:
        """For the same names the operators that are called."""
        return _Found(lambda packets: frozenset(packet(node.target) for node in self.named[packets]))


class _Found(dict[_Key, _Value]):
    """Answers to what is asked again and again, each found once."""

    def __init__(self, find: Callable[[_Key], _Value]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: _Key) -> _Value:
        found = self[key] = self._find(key)
        return found


def _elements(shape: tuple[Size, ...] | None) -> int:
    """Their number; 0 where it is not known as one."""
    sizes = [size for size in shape or () if isinstance(size, int)]
    return math.prod(sizes) if shape is not None and len(sizes) == len(shape) else 0


def _is_symbol(node: FxNode) -> bool:
    return node.annotation is not None and node.annotation.startswith("Sym(")
