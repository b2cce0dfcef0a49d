"""What inlining and fusion cost and save, read off loops, layouts and dtypes; nothing is measured.

Bytes are counted as Inductor counts them (`analyzer.analyze.traffic`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analyzer.analyze.storage import bytes_of
from analyzer.analyze.traffic import Traffic
from analyzer.analyze.whole import traffic_of
from analyzer.facts import Fate, GraphFacts, NodeFact, numel
from analyzer.model import DumpNode
from analyzer.reasons.why import Reasons, leaves_of


@dataclass(frozen=True, slots=True)
class Recomputed:
    """An op that is computed in several loop bodies because it was inlined into them.

    `places` are the buffers of those bodies, `groups` the post-fusion groups they are in: bodies of one group may share
    the work (common subexpressions), different groups can't. `elements` is what one computation takes.
    `realizing_bytes` is what a buffer would cost instead: one write, one read per place (None: it has one, or no size).
    """

    node: str
    places: tuple[str, ...]
    groups: tuple[str, ...]
    elements: int
    realizing_bytes: int | None

    @property
    def least(self) -> int:
        """Elements computed again in any case."""
        return max(len(self.groups) - 1, 0) * self.elements

    @property
    def most(self) -> int:
        """Elements computed again if no two bodies share the work."""
        return (len(self.places) - 1) * self.elements


@dataclass(frozen=True, slots=True)
class Saved:
    """A fused group: bytes that its members would move each on its own, and that the group moves.

    `kept_inside` are buffers that nobody but the members uses: Inductor counts neither their write nor their reads,
    though C++ code may still store a few of them.
    """

    group: str
    apart_bytes: int
    together_bytes: int
    kept_inside: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """What fusion saved."""
        return self.apart_bytes - self.together_bytes


@dataclass(frozen=True, slots=True)
class Costs:
    """Each list has its top offender first. `unsized` are ops and groups whose sizes are symbolic or not known."""

    recomputed: tuple[Recomputed, ...]
    saved: tuple[Saved, ...]
    unsized: tuple[str, ...] = ()


def costs(facts: GraphFacts) -> Costs:
    """The costs of inlining and fusion in one graph."""
    group_of = {buffer.name: buffer.group for buffer in facts.buffers}
    reasons = Reasons(facts)
    # What has no input is a constant: it costs nothing to have it again.
    inlined = [fact for fact in facts.nodes if fact.fate in (Fate.INLINED, Fate.REALIZED) and fact.node.inputs]
    places = {fact.name: (*((fact.buffer,) if fact.buffer else ()), *reasons.bodies(fact)) for fact in inlined}
    repeated = [fact for fact in inlined if len(places[fact.name]) > 1]
    recomputed = {fact.name: _recomputed(fact, places[fact.name], group_of) for fact in repeated}
    saved = dict(_savings(facts))
    unsized = [name for name, found in (*recomputed.items(), *saved.items()) if found is None]
    return Costs(
        tuple(sorted((r for r in recomputed.values() if r), key=lambda r: (-r.least, -r.most))),
        tuple(sorted((s for s in saved.values() if s and s.bytes > 0), key=lambda s: -s.bytes)),
        tuple(unsized),
    )


def _recomputed(fact: NodeFact, places: tuple[str, ...], group_of: Mapping[str, str | None]) -> Recomputed | None:
    """None where the size is not a number."""
    elements = numel(fact.node.shape)
    if elements is None:
        return None
    groups = dict.fromkeys(group for place in places if (group := group_of.get(place)) is not None)
    size = bytes_of(fact.node.dtype, elements)
    cost = size * (1 + len(places)) if size is not None and fact.buffer is None else None
    return Recomputed(fact.name, places, tuple(groups), elements, cost)


def _savings(facts: GraphFacts) -> Iterator[tuple[str, Saved | None]]:
    """For each group of several members."""
    if facts.graph.post is None or not facts.graph.post.nodes:
        return
    traffic = traffic_of(facts.graph)
    before = {leaf.name: leaf for leaf in leaves_of(facts)}
    for group in facts.graph.post.nodes:
        if group.members:
            yield group.name, _saved(group, before, traffic)


def _saved(group: DumpNode, before: Mapping[str, DumpNode], traffic: Traffic) -> Saved | None:
    alone = _sum(traffic.of([before.get(leaf.name, leaf) for leaf in group.leaves()]))
    together = _sum(traffic.of([group]))
    if alone is None or together is None:
        return None
    return Saved(group.name, alone, together, tuple(sorted(traffic.kept_inside(group))))


def _sum(pair: tuple[int | None, int | None]) -> int | None:
    read, written = pair
    return None if read is None or written is None else read + written
