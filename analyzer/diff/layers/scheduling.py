"""What the scheduler did differently: which operations it fused into groups, and the order of execution."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from analyzer.diff.matching import GraphSide, Matching
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.diff.regroup import Regrouping, regroupings
from analyzer.facts import GroupFact


def scheduling_changes(matching: Matching) -> Iterator[Change]:
    """Groups split, merged, regrouped or of another class; then those that run at another place."""
    groups = [{fact.name: fact for fact in side.facts.groups} for side in (matching.old, matching.new)]
    found = list(group_pairs(matching))
    for pair in found:
        yield from _group_change(matching, pair, *groups)
    yield from _order_change(matching, [pair for pair in found if len(pair.old) == len(pair.new) == 1])


def group_pairs(matching: Matching) -> Iterator[Regrouping]:
    """Groups that compute the same buffers."""
    old, new = (
        {buffer: group.name for group in side.facts.groups for buffer in group.buffers}
        for side in (matching.old, matching.new)
    )
    return regroupings(old, new, matching.buffers)


def _group_change(
    matching: Matching, pair: Regrouping, old: dict[str, GroupFact], new: dict[str, GroupFact]
) -> Iterator[Change]:
    sides = _side(matching.old, pair.old), _side(matching.new, pair.new)
    if len(pair.old) == len(pair.new) == 1:
        one, other = old[pair.old[0]], new[pair.new[0]]
        if one.node_class != other.node_class and len(one.members) == len(other.members):
            texts = (replace(side, text=fact.node_class) for side, fact in zip(sides, (one, other), strict=True))
            yield Change(Kind.CHANGED, Layer.SCHEDULING, "class", "group", *texts)
        return
    kind = Kind.SPLIT if len(pair.old) == 1 else Kind.MERGED if len(pair.new) == 1 else Kind.MOVED
    yield Change(kind, Layer.SCHEDULING, "members", "group", *sides)


def _side(side: GraphSide, names: tuple[str, ...]) -> Side:
    dump = side.facts.graph.post
    first = next((node for node in (dump.nodes if dump else ()) if node.name == names[0]), None)
    return Side(names, ", ".join(names), first.location if first else None)


# -------------------------------------------------------------------------------------------------------------- order


def _order_change(matching: Matching, pairs: Sequence[Regrouping]) -> Iterator[Change]:
    """One change that names the fewest groups which, moved, give the other order."""
    old, new = (_ranks(side) for side in (matching.old, matching.new))
    named = sorted(((pair.old[0], pair.new[0]) for pair in pairs), key=lambda names: old[names[0]])
    moved = _moved(named, new)
    if moved:
        befores, afters = ([names[at] for names in named] for at in (0, 1))
        afters.sort(key=lambda name: new[name])
        yield Change(
            Kind.MOVED,
            Layer.SCHEDULING,
            "order",
            "group",
            _place(matching.old, [one for one, _ in moved], befores),
            _place(matching.new, sorted((other for _, other in moved), key=new.__getitem__), afters),
        )


def _ranks(side: GraphSide) -> dict[str, int]:
    return {fact.name: at for at, fact in enumerate(side.facts.groups)}


def _moved(named: Sequence[tuple[str, str]], new: dict[str, int]) -> list[tuple[str, str]]:
    """The pairs outside one longest stretch of common order, in old order.

    Where several stretches are equally long, the direction of comparison must not matter: a diff mirrors.
    """
    order = sorted(range(len(named)), key=lambda at: new[named[at][1]])
    places = [0] * len(order)
    for place, at in enumerate(order):
        places[at] = place
    backwards = (order, [named[at][::-1] for at in order]) < (places, list(named))
    kept = _longest_rise(order if backwards else places)
    stay = {order[at] for at in kept} if backwards else set(kept)
    return [names for at, names in enumerate(named) if at not in stay]


def _longest_rise(sequence: Sequence[int]) -> list[int]:
    """Positions of a longest increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for at, value in enumerate(sequence):
        length = bisect_left(tails, value)
        before.append(ends[length - 1] if length else None)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [at]
    found: list[int] = []
    step = ends[-1] if ends else None
    while step is not None:
        found.append(step)
        step = before[step]
    return found[::-1]


def _place(side: GraphSide, names: Sequence[str], order: Sequence[str]) -> Side:
    rank = {name: at for at, name in enumerate(order)}
    told = (f"{name} after {order[rank[name] - 1]}" if rank[name] else f"{name} first" for name in names)
    return replace(_side(side, tuple(names)), text=", ".join(told))
