"""Which graph of one run belongs to which graph of another: by what they compute, then by name.

Frame numbers in folder names shift when one run breaks a graph, so equal content goes before equal names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from analyzer.model import CompiledGraph, Size

Tensor = tuple[str | None, tuple[Size, ...] | None]
"""dtype and shape."""

ALIKE = 0.5
"""The share of common operators from which on two graphs of different names are versions of one graph."""


class GraphPair(NamedTuple):
    """A graph in both runs; None where a run has no counterpart."""

    base: CompiledGraph | None
    ablated: CompiledGraph | None

    @property
    def name(self) -> str:
        """The base's name for it, or the other run's where only that compiled it: folders of cache hits have others."""
        graphs = [graph for graph in self if graph]
        return next((graph.label for graph in graphs if graph.pre or graph.post), graphs[0].label if graphs else "")


def inputs_of(graph: CompiledGraph) -> Mapping[str, Tensor]:
    """The graph's inputs by name: from the FX graph, else from the output code's benchmark."""
    if graph.fx is not None and graph.fx.nodes:
        return {node.name: (node.dtype, node.shape) for node in graph.fx.nodes if node.op == "placeholder"}
    if graph.code is not None:
        return {name: (layout.dtype, layout.size) for name, layout in graph.code.input_layouts.items()}
    return {}


def pair_graphs(
    old: Sequence[CompiledGraph], new: Sequence[CompiledGraph], *, versions: bool = True
) -> list[GraphPair]:
    """Pairs in the old run's order, then what only the new run has.

    `versions`: whether graphs that are merely alike are paired too, as two versions of one graph.
    """
    partner: dict[int, int] = {}
    for key in (_content_and_name, _content, _operators_and_name):
        _match_equal(old, new, partner, key)
    if versions:
        _match_alike(old, new, partner)
    _match_equal(old, new, partner, lambda graph: graph.label)
    if versions:
        _match_last(old, new, partner)
    taken = set(partner.values())
    pairs = [GraphPair(graph, new[partner[i]] if i in partner else None) for i, graph in enumerate(old)]
    return [*pairs, *(GraphPair(None, graph) for i, graph in enumerate(new) if i not in taken)]


def _match_equal(
    old: Sequence[CompiledGraph],
    new: Sequence[CompiledGraph],
    partner: dict[int, int],
    key: Callable[[CompiledGraph], Hashable],
) -> None:
    """Pairs graphs of equal keys in order; a key of None matches nothing."""
    free = [i for i in range(len(new)) if i not in set(partner.values())]
    for i, graph in enumerate(old):
        wanted = key(graph) if i not in partner else None
        same = (j for j in free if wanted is not None and key(new[j]) == wanted)
        found = next((j for j in same if _of_one_kind(graph, new[j])), None)
        if found is not None:
            partner[i] = found
            free.remove(found)


def _of_one_kind(one: CompiledGraph, other: CompiledGraph) -> bool:
    """Not one a forward and the other a backward graph, as far as their names tell."""
    return one.kind == other.kind or "unknown" in (one.kind, other.kind)


def _operators(graph: CompiledGraph) -> Counter[str]:
    fx = graph.fx or graph.readable
    return Counter(node.target for node in (fx.nodes if fx else ()) if node.live and node.op == "call_function")


def _content(graph: CompiledGraph) -> Hashable:
    operators = _operators(graph)
    inputs = tuple(inputs_of(graph).values())
    return (inputs, frozenset(operators.items())) if operators or inputs else None


def _content_and_name(graph: CompiledGraph) -> Hashable:
    content = _content(graph)
    return (content, graph.label) if content is not None else None


def _operators_and_name(graph: CompiledGraph) -> Hashable:
    return (graph.label, frozenset(_operators(graph))) if _operators(graph) else None


def _match_alike(old: Sequence[CompiledGraph], new: Sequence[CompiledGraph], partner: dict[int, int]) -> None:
    """Pairs what is left, the most alike first; equal names decide ties and suffice for half the likeness."""
    taken = set(partner.values())
    scored = sorted(
        (
            (_likeness(one, other) + (0.25 if one.label == other.label else 0.0), -i - j, i, j)
            for i, one in enumerate(old)
            for j, other in enumerate(new)
            if i not in partner and j not in taken
        ),
        reverse=True,
    )
    for score, _, i, j in scored:
        if score >= ALIKE and i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)


def _likeness(one: CompiledGraph, other: CompiledGraph) -> float:
    if not _of_one_kind(one, other):
        return 0.0
    left, right = _operators(one), _operators(other)
    union = sum((left | right).values())
    return sum((left & right).values()) / union if union else 0.0


def _match_last(old: Sequence[CompiledGraph], new: Sequence[CompiledGraph], partner: dict[int, int]) -> None:
    """What is alone on both sides belongs together: its folder was named under another kind or frame."""
    left = [i for i in range(len(old)) if i not in partner]
    right = [j for j in range(len(new)) if j not in set(partner.values())]
    if len(left) == len(right) == 1:
        partner[left[0]] = right[0]
