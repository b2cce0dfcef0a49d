"""Which FX node of the old graph is which of the new one: by structure, then by neighbours, then by name.

The idea is that of XLA's hlo_diff: exact subgraphs first (equal cones of inputs and of users), then outwards from what
is matched, along arguments and along users; names only for what is left.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from analyzer.diff.symbols import renamed, symbol_names
from analyzer.model import FxNode, Size

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSERTED = re.compile(r"\bon node '\w+'")
"""The name of a node in the message of an assertion."""
_COMMUTATIVE = frozenset(
    {f"aten.{name}.Tensor" for name in ("add", "mul", "eq", "ne", "bitwise_and", "bitwise_or", "bitwise_xor")}
    | {f"aten.{name}.default" for name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor")}
)
"""Operators whose two operands may be swapped, as decompositions and passes of some versions do."""
_MOST_ALIGNED = 2_000
"""Nodes without a partner that are still aligned; the time grows with their product."""
Label = Callable[[FxNode], Hashable]
Key = Callable[["FxShape", FxNode], Hashable]


@dataclass(frozen=True)
class FxShape:
    """One FX graph, prepared for matching. `named`: whether input names may be trusted to mean the same."""

    nodes: Sequence[FxNode]
    outputs: tuple[str | None, ...]
    named: bool

    @cached_property
    def by_name(self) -> Mapping[str, FxNode]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def symbols(self) -> Mapping[str, str]:
        """Names of symbolic sizes by rank."""
        return symbol_names(self.nodes)

    def operands(self, node: FxNode) -> Sequence[tuple[int, str]]:
        """The nodes that a node reads, each with its place; all at the first one where they may be swapped."""
        swappable = node.target in _COMMUTATIVE and not node.kwargs
        return [(0 if swappable else position, name) for position, name in enumerate(node.inputs)]

    @cached_property
    def users(self) -> Mapping[str, list[tuple[FxNode, int]]]:
        """For each node who uses it, and as which argument."""
        found: defaultdict[str, list[tuple[FxNode, int]]] = defaultdict(list)
        for node in self.nodes:
            for position, name in self.operands(node):
                found[name].append((node, position))
        return found

    @cached_property
    def skeletons(self) -> Mapping[str, Hashable]:
        """What each node does, its arguments' names taken out."""
        return {node.name: self._skeleton(node) for node in self.nodes}

    def _skeleton(self, node: FxNode) -> Hashable:
        target = node.target if node.op != "placeholder" else ""
        kwargs = tuple((key, self.blank(value, node)) for key, value in node.kwargs)
        return node.op, target, tuple(self.blank(arg, node) for arg in node.args), kwargs

    def blank(self, text: str, node: FxNode) -> str:
        """An argument's text with `%` for every FX node in it, and symbols by rank."""
        names = frozenset(node.inputs)
        text = _NAME.sub(lambda match: "%" if match[0] in names else match[0], _ASSERTED.sub("on node '%'", text))
        return renamed(text, self.symbols)

    def tensor(self, node: FxNode) -> Hashable:
        """dtype and shape."""
        return node.dtype, self.size(node.shape)

    def size(self, size: tuple[Size, ...] | None) -> tuple[Size, ...] | None:
        """A shape with symbols by rank."""
        return None if size is None else tuple(d if isinstance(d, int) else renamed(d, self.symbols) for d in size)

    def label(self, node: FxNode) -> Hashable:
        """What a node is by itself."""
        name = node.name if node.op == "placeholder" and self.named else ""
        return self.skeletons[node.name], self.tensor(node), name

    @cached_property
    def down(self) -> Mapping[str, int]:
        """A hash of each node's whole cone of inputs."""
        found: dict[str, int] = {}
        for node in self.nodes:
            inputs = [(place, found.get(name, 0)) for place, name in self.operands(node)]
            found[node.name] = hash((self.label(node), tuple(sorted(inputs))))
        return found

    @cached_property
    def up(self) -> Mapping[str, int]:
        """A hash of each node's whole cone of users, down to the graph's results."""
        returned = defaultdict(list)
        for position, name in enumerate(self.outputs):
            returned[name].append(position)
        found: dict[str, int] = {}
        for node in reversed(self.nodes):
            users = sorted((found.get(user.name, 0), position) for user, position in self.users.get(node.name, ()))
            found[node.name] = hash((self.label(node), tuple(users), tuple(returned.get(node.name, ()))))
        return found


@dataclass
class FxMatching:
    """A partial one-to-one matching of node names, both ways."""

    old: FxShape
    new: FxShape
    to_new: dict[str, str]
    to_old: dict[str, str]

    def add(self, one: str, other: str) -> None:
        """Matches two nodes."""
        self.to_new[one], self.to_old[other] = other, one

    def unlike_sizes(self, old: tuple[Size, ...] | None, new: tuple[Size, ...] | None) -> bool:
        """Whether both sizes or strides are known and differ, symbols by rank."""
        return None not in (old, new) and self.old.size(old) != self.new.size(new)

    def pairs(self) -> Iterator[tuple[FxNode, FxNode]]:
        """Matched nodes in the old graph's order."""
        for node in self.old.nodes:
            if node.name in self.to_new:
                yield node, self.new.by_name[self.to_new[node.name]]

    def left(self) -> tuple[list[FxNode], list[FxNode]]:
        """The nodes without a partner on either side."""
        return (
            [node for node in self.old.nodes if node.name not in self.to_new],
            [node for node in self.new.nodes if node.name not in self.to_old],
        )


def match_fx(
    old: Sequence[FxNode],
    new: Sequence[FxNode],
    outputs: tuple[tuple[str | None, ...], tuple[str | None, ...]] = ((), ()),
    given: Mapping[str, str] | None = None,
) -> FxMatching:
    """Matches two FX graphs; `given` are pairs that the caller knows, old name to new name."""
    named = _inputs(old) == _inputs(new)
    matching = FxMatching(FxShape(old, outputs[0], named), FxShape(new, outputs[1], named), {}, {})
    _match_given(matching, given or {})
    for key in (_whole, _cone) if named else (_whole, _context):
        _match_equal(matching, key)
    _spread(matching, _same_label)
    _match_equal(matching, _context)
    _spread(matching, _same_label)
    _align(matching)
    _spread(matching, _same_label)
    for key in (_named_label, _named_operator):
        _match_equal(matching, key)
        _spread(matching, _same_label)
    _spread(matching, _same_operator)
    _match_replaced(matching)
    return matching


def _match_given(matching: FxMatching, given: Mapping[str, str]) -> None:
    for one, other in given.items():
        if one in matching.old.by_name and other in matching.new.by_name:
            matching.add(one, other)


def _inputs(nodes: Sequence[FxNode]) -> list[Hashable]:
    return [(node.name, node.dtype, node.shape) for node in nodes if node.op == "placeholder"]


def _whole(shape: FxShape, node: FxNode) -> Hashable:
    return shape.down[node.name], shape.up[node.name]


def _cone(shape: FxShape, node: FxNode) -> Hashable:
    return shape.down[node.name]


def _context(shape: FxShape, node: FxNode) -> Hashable:
    return shape.up[node.name]


def _named_label(shape: FxShape, node: FxNode) -> Hashable:
    return node.name, shape.label(node)


def _named_operator(shape: FxShape, node: FxNode) -> Hashable:
    return node.name, node.op, node.target


def _match_equal(matching: FxMatching, key: Key) -> None:
    """Matches nodes of equal keys: namesakes first, then in order."""
    old, new = matching.left()
    free: defaultdict[Hashable, list[FxNode]] = defaultdict(list)
    for node in new:
        free[key(matching.new, node)].append(node)
    waiting: defaultdict[Hashable, list[FxNode]] = defaultdict(list)
    for node in old:
        found = key(matching.old, node)
        if found in free:
            waiting[found].append(node)
    for found, ones in waiting.items():
        _match_within(matching, ones, free[found])


def _match_within(matching: FxMatching, ones: list[FxNode], others: list[FxNode]) -> None:
    names = {node.name for node in others}
    same = {node.name for node in ones if node.name in names}
    for name in same:
        matching.add(name, name)
    rest = ([n for n in ones if n.name not in same], [n for n in others if n.name not in same])
    for one, other in zip(*rest, strict=False):
        matching.add(one.name, other.name)


def _same_label(matching: FxMatching, one: FxNode, other: FxNode) -> bool:
    return matching.old.label(one) == matching.new.label(other)


def _same_operator(matching: FxMatching, one: FxNode, other: FxNode) -> bool:
    return one.op == other.op and one.target == other.target


def _spread(matching: FxMatching, alike: Callable[[FxMatching, FxNode, FxNode], bool]) -> None:
    """From matched nodes to their arguments at equal places, and to their only alike users at equal places."""
    queue = list(matching.pairs())
    while queue:
        one, other = queue.pop()
        for first, second in _neighbours(matching, one, other, alike):
            if first.name not in matching.to_new and second.name not in matching.to_old:
                matching.add(first.name, second.name)
                queue.append((first, second))


def _neighbours(
    matching: FxMatching, one: FxNode, other: FxNode, alike: Callable[[FxMatching, FxNode, FxNode], bool]
) -> Iterator[tuple[FxNode, FxNode]]:
    old, new = matching.old, matching.new
    if len(one.inputs) == len(other.inputs):
        for first, second in zip(one.inputs, other.inputs, strict=True):
            if first in old.by_name and second in new.by_name:
                pair = old.by_name[first], new.by_name[second]
                if alike(matching, *pair):
                    yield pair
    left = [(user, at) for user, at in old.users.get(one.name, ()) if user.name not in matching.to_new]
    right = [(user, at) for user, at in new.users.get(other.name, ()) if user.name not in matching.to_old]
    for user, at in left:
        same = [u for u, position in right if position == at and alike(matching, user, u)]
        rivals = [u for u, position in left if position == at and bool(same) and alike(matching, u, same[0])]
        if len(same) == 1 and len(rivals) == 1:
            yield user, same[0]


def _align(matching: FxMatching) -> None:
    """Alike nodes in a common order, where an edit shifted the numbers in their names.

    Not where all names that are left are common: then they tell more. The aligner prefers one of its sides; which one
    must not depend on the direction of the comparison, for a diff mirrors.
    """
    old, new = ([node for node in nodes if node.op == "call_function"] for nodes in matching.left())
    if max(len(old), len(new)) > _MOST_ALIGNED or not {node.name for node in old} ^ {node.name for node in new}:
        return
    labels = [matching.old.label(node) for node in old], [matching.new.label(node) for node in new]
    swapped = repr(old) > repr(new)
    aligner = SequenceMatcher(None, *(labels[::-1] if swapped else labels), autojunk=False)
    for first, second, size in aligner.get_matching_blocks():
        one, other = (second, first) if swapped else (first, second)
        for at in range(size):
            matching.add(old[one + at].name, new[other + at].name)


def _match_replaced(matching: FxMatching) -> None:
    """One operator in the place of another: equal inputs or one same input, and equal users."""
    old, new = matching.left()
    free: defaultdict[Hashable, list[FxNode]] = defaultdict(list)
    for node in new:
        free[_place(node, matching.new, lambda name: name if name in matching.to_old else None)].append(node)
    for node in old:
        found = free.get(_place(node, matching.old, matching.to_new.get), ())
        if len(found) == 1 and node.op == "call_function":
            matching.add(node.name, found.pop().name)


def _place(node: FxNode, shape: FxShape, known: Callable[[str], str | None]) -> Hashable:
    """Where a node stands: its inputs and users in the new graph's names; unique to it when one is not matched."""
    inputs = sorted((place, known(name) or "") for place, name in shape.operands(node))
    users = sorted((known(user.name) or "", at) for user, at in shape.users.get(node.name, ()))
    if not all(name for _, name in inputs) or not users or not all(name for name, _ in users):
        return object()
    return tuple(inputs), tuple(users)
