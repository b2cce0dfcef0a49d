"""What lowering did differently: fates of values, layouts of buffers, loop bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from analyzer.diff.bodies import Naming, canonical_body, operations, readable_body
from analyzer.diff.following import Aspect
from analyzer.diff.layers.fx import both, subject_of
from analyzer.diff.layers.words import arrival_text, fate_text, home_text
from analyzer.diff.matching import GraphSide, Matching, is_alone
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.facts import BufferFact, Fate, NodeFact, Storage
from analyzer.model import DumpNode, LoopBody


def lowering_changes(matching: Matching, fx: Iterable[Change]) -> Iterator[Change]:
    """Fates, buffers, then the bodies whose differences nothing before explains; `fx` are the changes of the graph."""
    first = [*_fate_changes(matching), *_layout_changes(matching)]
    yield from first
    yield from _lone_helpers(matching)
    resized = {fact.name for fact in matching.old.facts.buffers if _told_by_fx(matching, fact)}
    touched = Touched.by(matching, [*fx, *first])
    yield from _body_changes(matching, replace(touched, old=touched.old | resized))


@dataclass(frozen=True, slots=True)
class Touched:
    """Names that changes speak of, on either side."""

    old: frozenset[str]
    new: frozenset[str]

    @classmethod
    def by(cls, matching: Matching, changes: Iterable[Change]) -> Touched:
        """Also the nodes that only one graph has."""
        listed = tuple(changes)
        removed, added = matching.fx.left()
        old = {name for change in listed for name in change.old.ids} | {node.name for node in removed}
        new = {name for change in listed for name in change.new.ids} | {node.name for node in added}
        return cls(frozenset(old), frozenset(new))


# -------------------------------------------------------------------------------------------------------------- fates


def _fate_changes(matching: Matching) -> Iterator[Change]:
    """Nodes with another fate, then those that are inlined elsewhere for no reason told before."""
    facts = {fact.name: fact for fact in matching.new.facts.nodes}
    pairs = [(one, facts.get(matching.fx.to_new.get(one.name, ""))) for one in matching.old.facts.nodes]
    both_live = [(one, other) for one, other in pairs if other is not None and (one.node.live or other.node.live)]
    known = [pair for pair in both_live if not _is_doubtful(matching, *pair)]
    moved = [pair for pair in known if pair[0].fate != pair[1].fate]
    for one, other in moved:
        yield _node_change("fate", one, other, (arrival_text(one, matching.old), arrival_text(other, matching.new)))
    told = _homes(matching, moved)
    for one, other in known:
        if one.fate == other.fate == Fate.INLINED and _elsewhere(matching, one, other, told):
            yield _node_change("inlined", one, other, (fate_text(one), fate_text(other)))


def _is_doubtful(matching: Matching, one: NodeFact, other: NodeFact) -> bool:
    return Fate.UNKNOWN in (one.fate, other.fate) or _only_unattributed(matching, one, other)


def _homes(matching: Matching, moved: Iterable[tuple[NodeFact, NodeFact]]) -> frozenset[str]:
    """The buffers, by their new names, that compute a node of another fate, or one that only one graph has."""
    lone = tuple({node.name for node in nodes} for nodes in matching.fx.left())
    ones = {one.name for one, _ in moved} | lone[0], {other.name for _, other in moved} | lone[1]
    old = {name for fact in matching.old.facts.nodes if fact.name in ones[0] for name in _computed_in(fact)}
    new = {name for fact in matching.new.facts.nodes if fact.name in ones[1] for name in _computed_in(fact)}
    return frozenset({matching.buffers.get(name, "") for name in old} | new)


def _computed_in(fact: NodeFact) -> tuple[str, ...]:
    return (*fact.inlined_into, fact.buffer) if fact.buffer else fact.inlined_into


def _only_unattributed(matching: Matching, one: NodeFact, other: NodeFact) -> bool:
    """Whether its buffer is in both graphs, and on one side nothing tells whose value it holds."""
    old, new = one.buffer or "", other.buffer or ""
    twins = (
        matching.new.buffers.get(matching.buffers.get(old, "")),
        matching.old.buffers.get(matching.buffers_back.get(new, "")),
    )
    return one.fate != other.fate and any(twin is not None and twin.fx_node is None for twin in twins)


def _elsewhere(matching: Matching, one: NodeFact, other: NodeFact, told: frozenset[str]) -> bool:
    """Whether it is computed elsewhere among the buffers that both graphs have.

    That a value now sits in a new buffer, or beside a node of another fate, follows from that buffer or node and is not
    told again; neither is that it left a buffer which now reads the new one.
    """
    old = {matching.buffers.get(name) for name in one.inlined_into}
    new = {name if name in matching.buffers_back else None for name in other.inlined_into}
    lost, gained = old - new - told - {None}, new - old - told - {None}
    return bool((lost and None not in new) or (gained and None not in old))


def _node_change(aspect: str, one: NodeFact, other: NodeFact, texts: tuple[str, str]) -> Change:
    sides = Side((one.name,), texts[0], one.node.location), Side((other.name,), texts[1], other.node.location)
    return Change(Kind.CHANGED, Layer.LOWERING, aspect, both(subject_of(one.node), subject_of(other.node)), *sides)


# ------------------------------------------------------------------------------------------------------------ buffers


def buffer_side(side: GraphSide, fact: BufferFact, text: str, code: tuple[str, ...] = ()) -> Side:
    """A buffer's part in a change: its name and the value that it holds."""
    leaf = side.leaves.get(fact.name)
    ids = (fact.name, fact.fx_node) if fact.fx_node else (fact.name,)
    return Side(ids, text, leaf.location if leaf else None, code)


def _layout_changes(matching: Matching) -> Iterator[Change]:
    for one, other in matching.pairs():
        told = _told_by_fx(matching, one)
        for aspect, old, new in _properties(matching, one, other):
            if aspect not in told:
                sides = buffer_side(matching.old, one, old), buffer_side(matching.new, other, new)
                yield Change(Kind.CHANGED, Layer.LOWERING, aspect, both(one.ir_class, other.ir_class), *sides)


def _properties(matching: Matching, one: BufferFact, other: BufferFact) -> Iterator[tuple[str, str, str]]:
    """Name, old and new value of each property that both sides know and that differs."""
    if one.ir_class != other.ir_class:
        yield "class", one.ir_class, other.ir_class
    if one.layout is None or other.layout is None:
        return
    if (one.storage == Storage.NONE) != (other.storage == Storage.NONE):
        yield "layout", one.layout.kind, other.layout.kind
    for aspect in ("dtype", "device", "size", "stride"):
        old, new = getattr(one.layout, aspect), getattr(other.layout, aspect)
        if None not in (old, new) and matching.old.text(old) != matching.new.text(new):
            yield aspect, _listed(old), _listed(new)


def _listed(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")


_CONSEQUENCES: Mapping[Aspect, tuple[str, ...]] = {"dtype": ("dtype",), "shape": ("size", "stride")}
"""What an FX node of another dtype or shape makes of its buffers."""


def _told_by_fx(matching: Matching, fact: BufferFact) -> frozenset[str]:
    """The properties that follow from the FX nodes that a buffer is made for."""
    names = {fact.fx_node} if fact.fx_node else set(fact.origins)
    told = (_CONSEQUENCES[aspect] for aspect, found in matching.spreads.items() if names & found.reached)
    return frozenset(chain.from_iterable(told))


def _lone_helpers(matching: Matching) -> Iterator[Change]:
    """Buffers that one graph lacks; those that hold the value of a node of another fate are told with the node."""
    for fact in matching.old.facts.buffers:
        if fact.name not in matching.buffers and _is_news(fact, matching.fx.to_new, matching.new):
            yield Change(Kind.REMOVED, Layer.LOWERING, "buffer", fact.ir_class, old=_helper_side(matching.old, fact))
    for fact in matching.new.facts.buffers:
        if fact.name not in matching.buffers_back and _is_news(fact, matching.fx.to_old, matching.old):
            yield Change(Kind.ADDED, Layer.LOWERING, "buffer", fact.ir_class, new=_helper_side(matching.new, fact))


def _is_news(fact: BufferFact, partners: Mapping[str, str], there: GraphSide) -> bool:
    """A helper that is not made for nodes that only this graph has, or a further buffer of a node realized in both."""
    if fact.fx_node is None:
        return not fact.origins or any(name in partners for name in fact.origins)
    return any(partners.get(fact.fx_node) == other.fx_node for other in there.facts.buffers if other.fx_node)


def _helper_side(side: GraphSide, fact: BufferFact) -> Side:
    layout = fact.layout
    dtype = (layout.dtype or "").removeprefix("torch.") if layout else ""
    size = _listed(layout.size) if layout and layout.size is not None else ""
    what = ["helper"] * (fact.fx_node is None) + [fact.ir_class] + [f"{dtype}{size}"] * bool(dtype or size)
    made = f" for {', '.join(fact.origins)}" if fact.origins else ""
    return buffer_side(side, fact, f"{' '.join(what)}{made} ({home_text(fact)})")


# -------------------------------------------------------------------------------------------------------- loop bodies


def _body_changes(matching: Matching, touched: Touched) -> Iterator[Change]:
    """Loop bodies that compute something else although no node, layout or neighbour of theirs changed."""
    old, new = matching.naming(matching.old), matching.naming(matching.new)
    done: set[str] = set()
    for one, other in matching.pairs():
        left, right = matching.old.leaves.get(one.name), matching.new.leaves.get(other.name)
        if left is None or right is None or left.body is None or right.body is None or left.name in done:
            continue
        done.add(left.name)
        aspect = _difference(matching, left.body, right.body, (old, new))
        if aspect is not None and not _explained(matching, (one, left), (other, right), touched):
            sides = _body_sides(matching, (one, left.body), (other, right.body))
            yield Change(Kind.CHANGED, Layer.LOWERING, aspect, both(one.ir_class, other.ir_class), *sides)


def _difference(matching: Matching, one: LoopBody, other: LoopBody, naming: tuple[Naming, Naming]) -> str | None:
    """What differs between two bodies: what they compute (`body`), or only where they do it (`indices`)."""
    for places in (True, False):
        left = canonical_body(one, naming[0], matching.old.symbols, places)
        if left != canonical_body(other, naming[1], matching.new.symbols, places):
            continue
        return None if places else "indices"
    return "body"


def _body_sides(matching: Matching, old: tuple[BufferFact, LoopBody], new: tuple[BufferFact, LoopBody]) -> list[Side]:
    """Each with how many operations it has, and which of them the other has not."""
    pairs = ((matching.old, old, new), (matching.new, new, old))
    return [_body_side(side, *own, operations(own[1]) - operations(there[1])) for side, own, there in pairs]


def _body_side(side: GraphSide, fact: BufferFact, body: LoopBody, only: Counter[str]) -> Side:
    amount = operations(body).total()
    names = ", ".join(f"{op} ×{count}" if count > 1 else op for op, count in sorted(only.items()))
    text = f"{amount} operation{'s' * (amount != 1)}{' with ' * bool(names)}{names}"
    return buffer_side(side, fact, text, readable_body(body, lambda name: name))


def _explained(
    matching: Matching, one: tuple[BufferFact, DumpNode], other: tuple[BufferFact, DumpNode], touched: Touched
) -> bool:
    """Whether a change already told is the cause: in the value itself, in what is inlined, or in what is read."""
    for side, names, (fact, leaf) in ((matching.old, touched.old, one), (matching.new, touched.new, other)):
        near = {fact.name, fact.fx_node, *fact.origins, *(dep.buffer for dep in leaf.reads)}
        naming = matching.naming(side)
        if near & names or any(is_alone(naming(dep.buffer)) for dep in leaf.reads):
            return True
    return False
