"""The groups of one graph as pictures: boxes in layers, and a line from each group to the groups that read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from analyzer.facts import GraphFacts, GroupFact
from analyzer.reasons.why import leaves_of
from analyzer.views.html.layout import Digraph, place
from analyzer.views.text import listed, plain, shortened

WINDOW = 60
"""Groups per picture: what a person can still follow. A larger graph is cut into several, in execution order."""

BOX_WIDTH, BOX_HEIGHT = 168, 44
GAP_X, GAP_Y = 24, 34
MARGIN = 12
NAME_LENGTH, NOTE_LENGTH = 20, 24


@dataclass(frozen=True, slots=True)
class Box:
    """A group; x and y are of its upper left corner. `outside`: groups of other pictures that it reads or feeds."""

    name: str
    title: str
    label: str
    note: str
    x: float
    y: float
    outside: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """`head` reads what `tail` writes; `path` is the text of an SVG path."""

    tail: str
    head: str
    path: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One window of the group graph, in pixels; `first` and `last` count its groups in execution order from 1."""

    first: int
    last: int
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    box: tuple[int, int] = (BOX_WIDTH, BOX_HEIGHT)


def pictures(facts: GraphFacts) -> tuple[Picture, ...]:
    """The pictures of all groups; none for a graph without groups."""
    whole = group_graph(facts)
    groups, computed = facts.groups, facts.computed_by_group()
    return tuple(
        _picture(whole, groups[start : start + WINDOW], start, computed) for start in range(0, len(groups), WINDOW)
    )


def group_graph(facts: GraphFacts) -> Digraph:
    """An edge from each group to every later one that reads a buffer of it; nodes in execution order."""
    graph: Digraph = nx.DiGraph()
    graph.add_nodes_from(group.name for group in facts.groups)
    order = {group.name: at for at, group in enumerate(facts.groups)}
    owner = {buffer.name: buffer.group for buffer in facts.buffers if buffer.group in order}
    reads = {leaf.name: [dep.buffer for dep in leaf.reads if dep.kind != "WeakDep"] for leaf in leaves_of(facts)}
    for group in facts.groups:
        for buffer in (buffer for member in group.members for buffer in reads.get(member, ())):
            before = owner.get(buffer)
            if before is not None and order[before] < order[group.name]:
                graph.add_edge(before, group.name)
    return graph


def _fitting(names: Sequence[str]) -> str:
    """As many names as a box holds, and how many more there are: `amax, sub, exp +9`."""
    shown = shortened(names[0], NOTE_LENGTH - 4) if names else ""
    for at, name in enumerate(names[1:], start=1):
        if len(shown) + len(name) + 2 > NOTE_LENGTH - 4:
            return f"{shown} +{len(names) - at}"
        shown += f", {name}"
    return shown


def _picture(whole: Digraph, groups: Sequence[GroupFact], start: int, computed: Mapping[str, Sequence[str]]) -> Picture:
    names = [group.name for group in groups]
    graph: Digraph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((tail, head) for tail in names for head in whole.successors(tail) if head in graph)
    placed = place(graph)
    corner = {name: _corner(*placed.boxes[name]) for name in names}
    boxes = tuple(_box(group, corner[group.name], whole, graph, computed.get(group.name, [])) for group in groups)
    width = max(x for x, _ in corner.values()) + BOX_WIDTH + MARGIN
    points = [_corner(*point)[0] + BOX_WIDTH / 2 for path in placed.paths.values() for point in path]
    height = max(y for _, y in corner.values()) + BOX_HEIGHT + MARGIN
    lines = tuple(Line(*edge, _path(path)) for edge, path in placed.paths.items())
    return Picture(start + 1, start + len(groups), max([width, *(x + MARGIN for x in points)]), height, boxes, lines)


def _corner(x: float, y: float) -> tuple[float, float]:
    return MARGIN + x * (BOX_WIDTH + GAP_X), MARGIN + y * (BOX_HEIGHT + GAP_Y)


def _box(group: GroupFact, corner: tuple[float, float], whole: Digraph, graph: Digraph, computed: Sequence[str]) -> Box:
    elsewhere = list(_elsewhere(whole, graph, group.name))
    title = f"{group.name}: {group.node_class}" + (f"; {listed(computed, most=8)}" if computed else "")
    return Box(
        group.name,
        title,
        plain(shortened(group.name, NAME_LENGTH)),
        plain(_fitting(computed) or shortened(group.node_class, NOTE_LENGTH)),
        *corner,
        "; ".join(elsewhere),
    )


def _elsewhere(whole: Digraph, graph: Digraph, name: str) -> Iterator[str]:
    sides = (("reads", whole.predecessors(name)), ("is read by", whole.successors(name)))
    for word, neighbours in sides:
        outside = [other for other in neighbours if other not in graph]
        if outside:
            yield f"{word} {listed(outside)}"


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line from the lower edge of a box, straight down through the bends, to the upper edge of another."""
    centres = [(x + BOX_WIDTH / 2, y) for x, y in (_corner(*point) for point in points)]
    (x, y), rest = centres[0], centres[1:]
    bottom = y + BOX_HEIGHT
    told = f"M{x:.0f} {bottom:.0f}"
    for at, (to_x, to_y) in enumerate(rest):
        told += f"C{x:.0f} {bottom + GAP_Y / 2:.0f} {to_x:.0f} {to_y - GAP_Y / 2:.0f} {to_x:.0f} {to_y:.0f}"
        x, bottom = to_x, to_y + BOX_HEIGHT
        if at < len(rest) - 1:
            told += f"V{bottom:.0f}"
    return told
