"""Follows views from a value to a node: with which strides and offset the node's elements lie in the value's memory.

Tells the slices of one buffer apart (`q`, `k` and `v` of one projection), which compute the same from the same load.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.targets import is_getitem, is_view, packet
from analyzer.model import FxNode, Layout, LoopBody


@dataclass(frozen=True, slots=True)
class Strided:
    """Where elements lie: sizes and strides in elements, and the position of the first one.

    A stride is None where a reshape has folded dimensions that no single stride describes; the offset is still right.
    """

    size: tuple[int, ...]
    stride: tuple[int | None, ...]
    offset: int = 0

    def moved(self, dim: int, steps: int) -> int:
        """The offset after some steps along a dimension. Raises ValueError where its stride is not known."""
        stride = self.stride[dim]
        if stride is None and steps:
            raise ValueError(dim)
        return self.offset + steps * (stride or 0)


def load_offsets(body: LoopBody, buffer: str) -> frozenset[int]:
    """The constant terms of the index expressions with which a body loads a buffer."""
    named = dict(body.indices)
    index_of = {s.result: named.get(s.args[0], "") for s in body.statements() if s.op == "get_index" and s.args}
    loads = [s for s in body.statements() if s.op == "load" and s.args and s.args[0] == buffer]
    return frozenset(_constant_term(index_of.get(load.args[1], "")) for load in loads if len(load.args) > 1)


def is_relaid(body: LoopBody, buffer: str, old: Layout | None, new: Layout | None) -> bool:
    """Whether a body copies a buffer element by element into one of equal sizes that lies otherwise in memory."""
    source, target = _start(old), _start(new)
    if source is None or target is None or source.size != target.size or source.stride == target.stride:
        return False
    steps = _steps(body, buffer)
    dims = [(s, t) for size, s, t in zip(source.size, source.stride, target.stride, strict=True) if size > 1]
    return steps is not None and all(_moves_together(s or 0, t or 0, steps) for s, t in dims)


def _steps(body: LoopBody, buffer: str) -> list[tuple[int, int, int]] | None:
    """For each loop its iterations, and its steps in the loaded and the stored buffer; None for anything but a copy."""
    named = dict(body.indices)
    index_of = {s.result: named.get(s.args[0], "") for s in body.statements() if s.op == "get_index" and s.args}
    accesses = [s for s in body.statements() if s.op in ("load", "store") and len(s.args) > 1]
    if [s.op for s in accesses] != ["load", "store"] or accesses[0].args[0] != buffer:
        return None
    load, store = (_coefficients(index_of.get(access.args[1], "")) for access in accesses)
    if load is None or store is None or not all(isinstance(extent, int) for _, extent in body.ranges):
        return None
    return [(int(extent), load.get(name, 0), store.get(name, 0)) for name, extent in body.ranges]


def _coefficients(index: str) -> dict[str, int] | None:
    """`9*p1 + p2` → steps by loop variable; None for anything but a sum of such terms."""
    terms = [re.fullmatch(r"(?:(\d+)\*)?([a-z]\w*)", term.strip()) for term in index.split(" + ")]
    return None if None in terms else {term[2]: int(term[1] or 1) for term in terms if term is not None}


def _moves_together(old: int, new: int, steps: list[tuple[int, int, int]]) -> bool:
    """Whether the loop that advances the load by `old` advances the store by `new`."""
    return any(load and old % load == 0 and old < load * n and new == store * (old // load) for n, load, store in steps)


def _constant_term(index: str) -> int:
    terms = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "()", index).replace(" - ", " + -").split(" + ")
    return sum(int(term) for term in terms if re.fullmatch(r"-?\d+", term.strip()))


def offset_of(fx: FxIndex, node: str, value: str, layout: Layout | None) -> int | None:
    """Offset of the node's first element in the value's memory; None when a step on the way is not a plain view."""
    start = _start(layout)
    found = None if start is None else _Walk(fx, value, start).at(node, 0)
    return None if found is None else found.offset


def _start(layout: Layout | None) -> Strided | None:
    if layout is None or layout.size is None or layout.stride is None:
        return None
    size = tuple(d for d in layout.size if isinstance(d, int))
    stride = tuple(d for d in layout.stride if isinstance(d, int))
    complete = len(size) == len(layout.size) and len(stride) == len(layout.stride) == len(size)
    return Strided(size, stride) if complete else None


@dataclass(frozen=True)
class _Walk:
    fx: FxIndex
    value: str
    start: Strided

    def at(self, name: str, depth: int) -> Strided | None:
        """The place of a node's elements; elementwise operations keep their argument's."""
        if name == self.value:
            return self.start
        node = self.fx.nodes[name]
        for source in self.fx.value_inputs[name] if depth < 60 else ():
            below = self.at(source, depth + 1)
            if below is not None:
                return self._step(node, below)
        return None

    def _step(self, node: FxNode, below: Strided) -> Strided | None:
        if is_getitem(node):
            return self._part(node, below)
        if not is_view(node):
            return below if node.shape == below.size else None
        if self.fx.items(node.name):
            return below if packet(node.target) in _SPLITS else None
        rule = _RULES.get(packet(node.target))
        return _tried(rule, below, node) if rule is not None else None

    def _part(self, item: FxNode, whole: Strided) -> Strided | None:
        """One piece of a split tensor."""
        parent = self.fx.parent(item)
        rule = _SPLITS.get(packet(parent.target)) if parent is not None else None
        return None if rule is None or parent is None else _tried(lambda x, _: rule(x, parent, item), whole, item)


def _tried(rule: Callable[[Strided, FxNode], Strided], below: Strided, node: FxNode) -> Strided | None:
    """The rule's result; None where an argument is no plain number (a symbolic size)."""
    try:
        return rule(below, node)
    except (ValueError, IndexError, SyntaxError, TypeError):
        return None


def _argument(node: FxNode, position: int, default: str | None = None) -> int:
    text = node.args[position] if position < len(node.args) else default
    if text is None:
        raise ValueError(position)
    return int(text)


def _integers(node: FxNode, position: int) -> list[int]:
    values = ast.literal_eval(node.args[position][:2_000])
    return [int(value) for value in values]


def _select(x: Strided, node: FxNode) -> Strided:
    dim, index = _argument(node, 1) % len(x.size), _argument(node, 2)
    offset = x.moved(dim, index + x.size[dim] if index < 0 else index)
    return Strided(x.size[:dim] + x.size[dim + 1 :], x.stride[:dim] + x.stride[dim + 1 :], offset)


def _slice(x: Strided, node: FxNode) -> Strided:
    dim, start = _argument(node, 1, "0") % len(x.size), _argument(node, 2, "0")
    step = _argument(node, 4, "1")
    begin = start + x.size[dim] if start < 0 else min(start, x.size[dim])
    inner = x.stride[dim]
    stride = (*x.stride[:dim], None if inner is None else inner * step, *x.stride[dim + 1 :])
    return Strided(_shape(node), stride, x.moved(dim, begin))


def _shape(node: FxNode) -> tuple[int, ...]:
    """The node's own sizes. Raises ValueError where one is symbolic or unknown."""
    sizes = tuple(d for d in node.shape or () if isinstance(d, int))
    if node.shape is None or len(sizes) != len(node.shape):
        raise ValueError(node.name)
    return sizes


def _permute(x: Strided, node: FxNode) -> Strided:
    order = [d % len(x.size) for d in _integers(node, 1)]
    return Strided(tuple(x.size[d] for d in order), tuple(x.stride[d] for d in order), x.offset)


def _transpose(x: Strided, node: FxNode) -> Strided:
    order = list(range(len(x.size)))
    first, second = (0, 1) if packet(node.target) == "t" else (_argument(node, 1), _argument(node, 2))
    order[first], order[second] = order[second], order[first]
    return Strided(tuple(x.size[d] for d in order), tuple(x.stride[d] for d in order), x.offset)


def _unsqueeze(x: Strided, node: FxNode) -> Strided:
    dim = _argument(node, 1) % (len(x.size) + 1)
    return Strided((*x.size[:dim], 1, *x.size[dim:]), (*x.stride[:dim], 0, *x.stride[dim:]), x.offset)


def _squeeze(x: Strided, node: FxNode) -> Strided:
    dims = list(range(len(x.size)))
    if len(node.args) > 1:
        dims = [d % len(x.size) for d in (_integers(node, 1) if node.args[1].startswith("[") else [_argument(node, 1)])]
    kept = [d for d in range(len(x.size)) if not (d in dims and x.size[d] == 1)]
    return Strided(tuple(x.size[d] for d in kept), tuple(x.stride[d] for d in kept), x.offset)


def _expand(x: Strided, node: FxNode) -> Strided:
    shape = _shape(node)
    pairs = zip_longest(reversed(shape), reversed(x.size), reversed(x.stride), fillvalue=1)
    strides = [stride if old == new else 0 for new, old, stride in pairs]
    return Strided(shape, tuple(reversed(strides)), x.offset)


def _view(x: Strided, node: FxNode) -> Strided:
    """Splits and merges dimensions; where no strides describe the result, they become unknown."""
    shape = _shape(node)
    return Strided(shape, _restrided(x, shape) or (None,) * len(shape), x.offset)


def _restrided(x: Strided, shape: tuple[int, ...]) -> tuple[int | None, ...] | None:
    runs = _runs(x)
    strides: list[int | None] = []
    for size in reversed(shape):
        if size == 1:
            strides.append(0)
            continue
        while runs and runs[-1][0] == 1:
            runs.pop()
        extent, step = runs.pop() if runs else (1, None)
        if step is None or extent % size:
            return None
        strides.append(step)
        runs.append((extent // size, step * size))
    return tuple(reversed(strides))


def _runs(x: Strided) -> list[tuple[int, int | None]]:
    """Neighbouring dimensions that lie densely in one another, merged: (elements, innermost stride)."""
    runs: list[tuple[int, int | None]] = []
    for size, stride in zip(x.size, x.stride, strict=True):
        if size == 1:
            continue
        if runs and stride is not None and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def _split(x: Strided, split: FxNode, item: FxNode) -> Strided:
    dim, index = _argument(split, 2, "0") % len(x.size), _argument(item, 1)
    each = split.args[1]
    before = sum(_integers(split, 1)[:index]) if each.startswith("[") else int(each) * index
    return Strided(_shape(item), x.stride, x.moved(dim, before))


def _unbind(x: Strided, unbind: FxNode, item: FxNode) -> Strided:
    dim, index = _argument(unbind, 1, "0") % len(x.size), _argument(item, 1)
    return Strided(_shape(item), x.stride[:dim] + x.stride[dim + 1 :], x.moved(dim, index))


_SPLITS: Mapping[str, Callable[[Strided, FxNode, FxNode], Strided]] = {
    "split": _split,
    "split_with_sizes": _split,
    "unbind": _unbind,
}

_RULES: Mapping[str, Callable[[Strided, FxNode], Strided]] = {
    "select": _select,
    "slice": _slice,
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "_reshape_alias"), _view),
    **dict.fromkeys(("detach", "alias", "lift_fresh"), lambda x, node: x),
}
