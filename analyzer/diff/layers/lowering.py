"""What lowering did differently: fates of values, layouts of buffers, loop bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analyzer.diff.bodies import canonical_body, readable_body
from analyzer.diff.layers.fx import both, subject_of
from analyzer.diff.layers.words import arrival_text, fate_text, home_text
from analyzer.diff.matching import GraphSide, Matching, is_alone
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.facts import BufferFact, Fate, NodeFact
from analyzer.model import DumpNode, LoopBody


def lowering_changes(matching: Matching, fx: Iterable[Change]) -> Iterator[Change]:
    """Fates, buffers, then the bodies whose differences nothing before explains; `fx` are the changes of the graph."""
    first = [*_fate_changes(matching), *_layout_changes(matching)]
    yield from first
    yield from _lone_helpers(matching)
    yield from _body_changes(matching, Touched.by(matching, [*fx, *first]))


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
    facts = {fact.name: fact for fact in matching.new.facts.nodes}
    for one in matching.old.facts.nodes:
        other = facts.get(matching.fx.to_new.get(one.name, ""))
        if other is not None and (one.node.live or other.node.live):
            yield from _fate_change(matching, one, other)


def _fate_change(matching: Matching, one: NodeFact, other: NodeFact) -> Iterator[Change]:
    if Fate.UNKNOWN in (one.fate, other.fate) or _only_unattributed(matching, one, other):
        return
    if one.fate != other.fate:
        texts = arrival_text(one, matching.old), arrival_text(other, matching.new)
        yield _node_change("fate", one, other, texts)
    elif one.fate == Fate.INLINED and _elsewhere(matching, one, other):
        yield _node_change("inlined", one, other, (fate_text(one), fate_text(other)))


def _only_unattributed(matching: Matching, one: NodeFact, other: NodeFact) -> bool:
    """Whether its buffer is in both graphs, and on one side nothing tells whose value it holds."""
    old, new = one.buffer or "", other.buffer or ""
    twins = (
        matching.new.buffers.get(matching.buffers.get(old, "")),
        matching.old.buffers.get(matching.buffers_back.get(new, "")),
    )
    return one.fate != other.fate and any(twin is not None and twin.fx_node is None for twin in twins)


def _elsewhere(matching: Matching, one: NodeFact, other: NodeFact) -> bool:
    """Whether it is computed more or less often, or elsewhere among the buffers that both graphs have.

    That a value now sits in the body of a buffer that is new follows from that buffer and is not told again.
    """
    old = {matching.buffers.get(name) for name in one.inlined_into}
    new = {name if name in matching.buffers_back else None for name in other.inlined_into}
    if None in old or None in new:
        return len(one.inlined_into) != len(other.inlined_into)
    return old != new


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
    for aspect in ("dtype", "device", "size", "stride"):
        old, new = getattr(one.layout, aspect), getattr(other.layout, aspect)
        if None not in (old, new) and matching.old.text(old) != matching.new.text(new):
            yield aspect, _listed(old), _listed(new)


def _listed(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")


def _told_by_fx(matching: Matching, fact: BufferFact) -> frozenset[str]:
    """What follows from the FX node itself: a changed dtype or shape gives the buffer another dtype, size, stride."""
    one = matching.fx.old.by_name.get(fact.fx_node or "")
    other = matching.fx.new.by_name.get(matching.fx.to_new.get(fact.fx_node or "", ""))
    if one is None or other is None:
        return frozenset()
    dtype = {"dtype"} if one.dtype != other.dtype else set()
    size = {"size", "stride"} if matching.fx.old.size(one.shape) != matching.fx.new.size(other.shape) else set()
    return frozenset(dtype | size)


def _lone_helpers(matching: Matching) -> Iterator[Change]:
    """Helper buffers that one graph lacks; those that hold a node's value are told with the node."""
    for fact in matching.old.facts.buffers:
        if fact.name not in matching.buffers and _is_news(fact, set(matching.fx.to_new)):
            yield Change(Kind.REMOVED, Layer.LOWERING, "buffer", fact.ir_class, old=_helper_side(matching.old, fact))
    for fact in matching.new.facts.buffers:
        if fact.name not in matching.buffers_back and _is_news(fact, set(matching.fx.to_old)):
            yield Change(Kind.ADDED, Layer.LOWERING, "buffer", fact.ir_class, new=_helper_side(matching.new, fact))


def _is_news(fact: BufferFact, matched: set[str]) -> bool:
    """Not the value of a node, and not made for nodes that only this graph has."""
    return fact.fx_node is None and (not fact.origins or any(name in matched for name in fact.origins))


def _helper_side(side: GraphSide, fact: BufferFact) -> Side:
    layout = fact.layout
    dtype = (layout.dtype or "").removeprefix("torch.") if layout else ""
    size = _listed(layout.size) if layout and layout.size is not None else ""
    made = f" for {', '.join(fact.origins)}" if fact.origins else ""
    return buffer_side(side, fact, f"helper {fact.ir_class} {dtype}{size}{made} ({home_text(fact)})")


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
        bodies = (
            canonical_body(left.body, old, matching.old.symbols),
            canonical_body(right.body, new, matching.new.symbols),
        )
        if bodies[0] != bodies[1] and not _explained(matching, (one, left), (other, right), touched):
            sides = _body_side(matching.old, one, left.body), _body_side(matching.new, other, right.body)
            yield Change(Kind.CHANGED, Layer.LOWERING, "body", both(one.ir_class, other.ir_class), *sides)


def _body_side(side: GraphSide, fact: BufferFact, body: LoopBody) -> Side:
    amount = sum(statement.op not in ("get_index", "return") for statement in body.statements())
    code = readable_body(body, lambda name: name)
    return buffer_side(side, fact, f"a loop body of {amount} operations", code)


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
