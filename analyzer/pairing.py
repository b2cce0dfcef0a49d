"""Which graph of the ablated run belongs to which graph of the base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from analyzer.model import CompiledGraph, Run, Size


@dataclass(frozen=True, slots=True)
class GraphPair:
    """A graph in both arms; None where an arm has no counterpart."""

    base: CompiledGraph | None
    ablated: CompiledGraph | None

    @property
    def name(self) -> str:
        """The base's name for it, the ablated arm's where only that has it."""
        graph = self.base or self.ablated
        return graph.label if graph else ""


Tensor = tuple[str | None, tuple[Size, ...] | None]
"""dtype and shape."""


def inputs_of(graph: CompiledGraph) -> Mapping[str, Tensor]:
    """The graph's inputs by name: from the FX graph, else from the output code's benchmark."""
    if graph.fx is not None and graph.fx.nodes:
        return {node.name: (node.dtype, node.shape) for node in graph.fx.nodes if node.op == "placeholder"}
    if graph.code is not None:
        return {name: (layout.dtype, layout.size) for name, layout in graph.code.input_layouts.items()}
    return {}


def _content(graph: CompiledGraph) -> Hashable:
    """What a graph computes on what, whatever it is called; None when nothing tells."""
    if graph.fx is None or not graph.fx.nodes:
        return None
    calls = Counter(node.target for node in graph.fx.nodes if node.live and node.op == "call_function")
    return tuple(inputs_of(graph).items()), frozenset(calls.items())


def pair_graphs(base: Run, ablated: Run) -> Iterator[GraphPair]:
    """Pairs in the base's order, then what only the ablated arm has.

    Equal names win unless another graph of the ablated arm has the same content and the namesake has not: frame
    numbers shift when one arm breaks a graph. What has no namesake is paired by content.
    """
    free = {graph.label: graph for graph in ablated.graphs}
    taken = {graph.label: _partner(graph, free, base) for graph in base.graphs}
    used = {partner.label for partner in taken.values() if partner}
    for graph in base.graphs:
        yield GraphPair(graph, taken[graph.label])
    for graph in ablated.graphs:
        if graph.label not in used:
            yield GraphPair(None, graph)


def _partner(graph: CompiledGraph, free: dict[str, CompiledGraph], base: Run) -> CompiledGraph | None:
    """Takes the best partner out of `free`."""
    namesake, content = free.get(graph.label), _content(graph)
    if namesake is None or (content is not None and _content(namesake) not in (content, None)):
        names = {other.label for other in base.graphs}
        strangers = (other for other in free.values() if other.label not in names)
        same = [other for other in strangers if content is not None and _content(other) == content]
        namesake = same[0] if same else namesake
    return free.pop(namesake.label) if namesake else None
