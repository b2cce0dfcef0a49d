"""How one partition of things became another: which parts stayed, split, merged, or were regrouped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import networkx as nx


@dataclass(frozen=True, slots=True)
class Regrouping:
    """Parts of the old and of the new partition that share matched members, directly or through others."""

    old: tuple[str, ...]
    new: tuple[str, ...]


def regroupings(old: Mapping[str, str], new: Mapping[str, str], matched: Mapping[str, str]) -> Iterator[Regrouping]:
    """Connected parts; `old` and `new` map members to their parts, `matched` old members to new ones.

    Parts in their own order; parts without a matched member are not mentioned.
    """
    graph: nx.Graph[tuple[str, str]] = nx.Graph()
    for member, other in matched.items():
        if member in old and other in new:
            graph.add_edge(("old", old[member]), ("new", new[other]))
    places = {("old", part): at for at, part in enumerate(dict.fromkeys(old.values()))}
    places |= {("new", part): at for at, part in enumerate(dict.fromkeys(new.values()))}
    for component in nx.connected_components(graph):
        parts = sorted(component, key=lambda part: places[part])
        yield Regrouping(
            tuple(name for side, name in parts if side == "old"), tuple(name for side, name in parts if side == "new")
        )
