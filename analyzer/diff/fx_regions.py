"""Nodes that only one of two FX graphs has, in connected parts: what a pass or decomposition put in place of what.

Parts of both graphs belong together where they feed the same argument of a matched node, or the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import networkx as nx

from analyzer.diff.fx_matching import FxMatching, FxShape
from analyzer.model import FxNode


@dataclass(frozen=True, slots=True)
class Region:
    """Connected nodes of the old graph, and those of the new one in their place; one of the two may be empty."""

    old: tuple[FxNode, ...]
    new: tuple[FxNode, ...]


_End = tuple[str, str]
"""Which graph, and the node's name there."""


def regions(matching: FxMatching, removed: Sequence[FxNode], added: Sequence[FxNode]) -> Iterator[Region]:
    """Every node of `removed` and `added` in one region, in the graphs' order."""
    graph: nx.Graph[_End] = nx.Graph()
    places = {end: at for at, end in enumerate((*_ends("old", removed), *_ends("new", added)))}
    graph.add_nodes_from(places)
    for side, shape, nodes in (("old", matching.old, removed), ("new", matching.new, added)):
        graph.add_edges_from(_inner_edges(side, shape, nodes))
    graph.add_edges_from((one, other) for one, other in _outer_edges(matching) if one in places and other in places)
    for component in nx.connected_components(graph):
        ends = sorted(component, key=places.__getitem__)
        yield Region(
            tuple(matching.old.by_name[name] for side, name in ends if side == "old"),
            tuple(matching.new.by_name[name] for side, name in ends if side == "new"),
        )


def _ends(side: str, nodes: Sequence[FxNode]) -> Iterator[_End]:
    yield from ((side, node.name) for node in nodes)


def _inner_edges(side: str, shape: FxShape, nodes: Sequence[FxNode]) -> Iterator[tuple[_End, _End]]:
    """From argument to reader; inputs stand alone, and constants of many readers do not join these."""
    lone = {node.name: node for node in nodes if node.op != "placeholder"}
    for node in nodes:
        for source in (lone[name] for name in node.inputs if name in lone):
            if source.inputs or len(shape.users[source.name]) == 1:
                yield (side, source.name), (side, node.name)


def _outer_edges(matching: FxMatching) -> Iterator[tuple[_End, _End]]:
    """Between what matched nodes, and the graphs' results, take from nodes without a partner."""
    for one, other in matching.pairs():
        left = [name for _, name in matching.old.operands(one) if name not in matching.to_new]
        right = [name for _, name in matching.new.operands(other) if name not in matching.to_old]
        if len(left) == len(right):
            yield from _across(left, right)
    yield from _across(matching.old.outputs, matching.new.outputs)


def _across(left: Sequence[str | None], right: Sequence[str | None]) -> Iterator[tuple[_End, _End]]:
    yield from ((("old", one), ("new", other)) for one, other in zip_longest(left, right) if one and other)
