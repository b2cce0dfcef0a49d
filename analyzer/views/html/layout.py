"""Where the boxes of a layered picture go: Sugiyama's method in small, on top of networkx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx

if TYPE_CHECKING:
    Digraph: TypeAlias = nx.DiGraph[Any]
else:
    Digraph = nx.DiGraph

SWEEPS = 6
"""Passes down and up again; more change nothing that an eye can see."""

Vertex = tuple[str, int]
"""A box, or the bend of a long edge in one of the layers that it crosses: the bend's name is its edge's."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Centres: `boxes` by node; `paths` by edge, the points from its tail through its bends to its head.

    x is in units of one box, y counts layers from 0; x starts at 0.
    """

    boxes: Mapping[str, tuple[float, float]]
    paths: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]


BEND = 0.25
"""The width of a bend, in boxes."""


def place(graph: Digraph) -> Placed:
    """Places the nodes of an acyclic graph; nodes without order among them keep the graph's own."""
    layer = _layers(graph)
    routed, chains = _with_bends(graph, layer)
    rows = _rows(routed)
    x = _straighten(routed, _untangle(routed, rows))
    left = min(x.values(), default=0.0)
    at = {vertex: (x[vertex] - left, float(row)) for row, vertices in enumerate(rows) for vertex in vertices}
    boxes = {name: at[name, layer[name]] for name in graph}
    return Placed(boxes, {edge: tuple(at[vertex] for vertex in chain) for edge, chain in chains.items()})


def _layers(graph: Digraph) -> dict[str, int]:
    """One below the lowest predecessor; what only feeds others moves down to them, which shortens its edges."""
    order = list(nx.topological_sort(graph))
    layer: dict[str, int] = {}
    for node in order:
        layer[node] = 1 + max((layer[before] for before in graph.predecessors(node)), default=-1)
    for node in reversed(order):
        if graph.in_degree(node) == 0 and graph.out_degree(node):
            layer[node] = min(layer[after] for after in graph.successors(node)) - 1
    return layer


def _with_bends(graph: Digraph, layer: Mapping[str, int]) -> tuple[Digraph, dict[tuple[str, str], list[Vertex]]]:
    """The same graph with a bend wherever an edge crosses a layer, and the chain that stands for each edge."""
    routed: Digraph = nx.DiGraph()
    routed.add_nodes_from((node, layer[node]) for node in graph)
    chains = {}
    for tail, head in graph.edges:
        bends = [(f"{tail}\0{head}", row) for row in range(layer[tail] + 1, layer[head])]
        chains[tail, head] = [(tail, layer[tail]), *bends, (head, layer[head])]
        nx.add_path(routed, chains[tail, head])
    return routed, chains


def _rows(routed: Digraph) -> list[list[Vertex]]:
    rows: list[list[Vertex]] = [[] for _ in range(1 + max((row for _, row in routed), default=-1))]
    for vertex in routed:
        rows[vertex[1]].append(vertex)
    return rows


def _untangle(routed: Digraph, rows: list[list[Vertex]]) -> list[list[Vertex]]:
    """Sorts every row by the mean position of its neighbours above, then below, and so on."""
    position = {vertex: float(index) for row in rows for index, vertex in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            neighbours = routed.predecessors if down else routed.successors
            wish = {v: fmean(position[n] for n in near) if (near := list(neighbours(v))) else position[v] for v in row}
            row.sort(key=wish.__getitem__)
            position.update((vertex, float(index)) for index, vertex in enumerate(row))
    return rows


def _straighten(routed: Digraph, rows: Sequence[Sequence[Vertex]]) -> dict[Vertex, float]:
    """Coordinates near the neighbours' that keep the order and leave room for every box."""
    x = {vertex: float(index) for row in rows for index, vertex in enumerate(row)}
    for sweep in range(2 * SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wishes = [_wish(routed, vertex, x) for vertex in row]
            x.update(zip(row, _apart(row, wishes), strict=True))
    return x


def _wish(routed: Digraph, vertex: Vertex, x: Mapping[Vertex, float]) -> float:
    near = [*routed.predecessors(vertex), *routed.successors(vertex)]
    return fmean(x[n] for n in near) if near else x[vertex]


def _apart(row: Sequence[Vertex], wishes: Sequence[float]) -> list[float]:
    """The wishes, moved as little as a row without overlaps allows: pushed right, pushed left, and the mean of both."""
    gaps = [(_width(one) + _width(other)) / 2 for one, other in pairwise(row)]
    right, left = list(wishes), list(wishes)
    for at, gap in enumerate(gaps):
        right[at + 1] = max(right[at + 1], right[at] + gap)
    for at in range(len(gaps) - 1, -1, -1):
        left[at] = min(left[at], left[at + 1] - gaps[at])
    return [(one + other) / 2 for one, other in zip(right, left, strict=True)]


def _width(vertex: Vertex) -> float:
    return BEND if "\0" in vertex[0] else 1.0
