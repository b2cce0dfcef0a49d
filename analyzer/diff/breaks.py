"""A graph that the other run compiled in several parts, as a graph break leaves it: each part against its share.

Whoever adds a break adds graphs and takes nodes from one; nothing was removed from the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from analyzer.diff.fx_matching import match_fx
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.facts import GraphFacts, Summary
from analyzer.model import FxNode

FactsPair = tuple[GraphFacts | None, GraphFacts | None]

_SHARE = 0.75
"""The least share of a part's calls that are in the whole graph, and of the whole graph's that are in its parts. The
others came or went with the break."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two graphs to compare, or one without a counterpart.

    Where a graph was broken, each part stands beside the share of the whole graph that it computes, `nodes` are the
    pairs of names that are known already, old to new, and the first part has the `broken` change and all costs.
    """

    old: GraphFacts | None
    new: GraphFacts | None
    nodes: Mapping[str, str] | None = None
    broken: Change | None = None

    def mirrored(self) -> Comparison:
        """The same comparison the other way round."""
        nodes = {other: one for one, other in self.nodes.items()} if self.nodes else None
        return Comparison(self.new, self.old, nodes, self.broken.mirrored() if self.broken else None)


def comparisons(pairs: Sequence[FactsPair]) -> Iterator[Comparison]:
    """What to compare, in the order of the pairs; graphs without a counterpart are parts of a pair where they fit."""
    lone = [one for one, other in pairs if one and not other], [other for one, other in pairs if other and not one]
    found = [list(_broken(old, new, lone)) if old is not None and new is not None else [] for old, new in pairs]
    left = {id(graph) for graphs in lone for graph in graphs}
    for (old, new), parts in zip(pairs, found, strict=True):
        if parts:
            yield from parts
        elif None not in (old, new) or id(old or new) in left:
            yield Comparison(old, new)


def _broken(old: GraphFacts, new: GraphFacts, lone: tuple[list[GraphFacts], list[GraphFacts]]) -> Iterator[Comparison]:
    """The old graph in parts of the new run, else the other way round; the parts are taken from `lone`."""
    for whole, first, others, new_is_whole in ((old, new, lone[1], False), (new, old, lone[0], True)):
        shares = _shares(whole, first, others)
        if len(shares) > 1:
            taken = {id(part) for part, _ in shares}
            others[:] = [graph for graph in others if id(graph) not in taken]
            yield from _parts(whole, shares, new_is_whole)
            return


_Share = tuple[GraphFacts, Mapping[str, str]]
"""A part, and which nodes of the whole graph, by name, are which of its own."""


def _shares(whole: GraphFacts, first: GraphFacts, others: Sequence[GraphFacts]) -> list[_Share]:
    """The parts of a graph, which compute most of it together; at most one when it is whole."""
    left = [fact.node for fact in whole.nodes]
    shares: list[_Share] = []
    for part in (first, *others) if others else ():
        matched = _matched(whole, left, part) if part.graph.kind == whole.graph.kind else None
        if matched is not None:
            shares.append((part, matched))
            left = [node for node in left if node.name not in matched]
        elif part is first:
            break
    return shares if len(_calls(left)) <= (1 - _SHARE) * len(_calls([fact.node for fact in whole.nodes])) else []


def _calls(nodes: Iterable[FxNode]) -> set[str]:
    return {node.name for node in nodes if node.op == "call_function" and node.live}


def _matched(whole: GraphFacts, left: Sequence[FxNode], part: GraphFacts) -> Mapping[str, str] | None:
    """The nodes of a part among those that are left of the whole; None where it is no part."""
    outputs = tuple((facts.graph.fx.outputs if facts.graph.fx else ()) for facts in (whole, part))
    matching = match_fx(left, [fact.node for fact in part.nodes], (outputs[0], outputs[1]))
    calls = _calls(fact.node for fact in part.nodes)
    common = len(calls & matching.to_old.keys())
    return matching.to_new if calls and common >= _SHARE * len(calls) else None


def _parts(whole: GraphFacts, shares: Sequence[_Share], new_is_whole: bool) -> Iterator[Comparison]:
    total = replace(shares[0][0], summary=_sum([part.summary for part, _ in shares]))
    change = _change(whole, [part for part, _ in shares])
    elsewhere = {name for _, matched in shares[1:] for name in matched}
    names = {fact.name for fact in whole.nodes} - elsewhere
    for at, (part, matched) in enumerate(shares):
        share = _restricted(whole, set(matched)) if at else replace(_restricted(whole, names), summary=whole.summary)
        own = replace(part, summary=Summary()) if at else total
        comparison = Comparison(share, own, matched, None if at else change)
        yield comparison.mirrored() if new_is_whole else comparison


def _change(whole: GraphFacts, parts: Sequence[GraphFacts]) -> Change:
    labels = sorted((part.graph.label for part in parts), key=lambda label: (len(label), label))
    sides = Side((whole.graph.label,), whole.graph.label), Side(tuple(labels), ", ".join(labels))
    return Change(Kind.SPLIT, Layer.FX, "graphs", "graph", *sides)


def _restricted(whole: GraphFacts, names: set[str]) -> GraphFacts:
    """What is known of these nodes, of the inputs that they read, and of the buffers that hold or help them."""
    nodes = [fact for fact in whole.nodes if fact.name in names]
    read = {name for fact in nodes for name in fact.node.inputs}
    inputs = {fact.name for fact in whole.nodes if fact.node.op == "placeholder" and fact.name in read}
    kept = {fact.name for fact in nodes if fact.node.op != "placeholder"} | inputs
    fx = whole.graph.fx
    own = replace(fx, nodes=tuple(node for node in fx.nodes if node.name in kept), outputs=()) if fx else None
    buffers = (fact for fact in whole.buffers if {fact.fx_node, *fact.origins} & kept)
    return replace(
        whole,
        graph=replace(whole.graph, fx=own),
        nodes=tuple(fact for fact in whole.nodes if fact.name in kept),
        buffers=tuple(buffers),
        summary=Summary(),
    )


def _sum(summaries: Sequence[Summary]) -> Summary:
    """Counts of all parts together; unknown where one is."""
    columns = {field.name: [getattr(summary, field.name) for summary in summaries] for field in fields(Summary)}
    return Summary(**{name: None if None in values else sum(values) for name, values in columns.items()})
