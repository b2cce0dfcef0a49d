"""Promises about what lowering and scheduling do with ops: realized, stored, recomputed, fused, attributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from analyzer.contracts.because import Because
from analyzer.contracts.records import Clause, Judgement, Outcome
from analyzer.contracts.scope import Scope, told
from analyzer.facts import Fate, GraphFacts, NodeFact, Storage

Verdict = tuple[Outcome, str]
_NO_COMPUTATION = (Fate.VIEW, Fate.FOLDED)


def per_node(judge: Callable[[GraphFacts, NodeFact], Verdict]) -> Callable[[Clause, Scope], Iterator[Judgement]]:
    """A judge of clauses out of a judge of nodes: every node that is meant must keep the promise."""

    def judged(clause: Clause, scope: Scope) -> Iterator[Judgement]:
        yield from scope.unknown(clause.items)
        for selector in clause.items:
            for facts, node in scope.nodes(selector):
                outcome, found = judge(facts, node)
                because = scope.why(facts).lowered(node) if outcome == Outcome.BROKEN else ""
                yield told(facts, node, outcome, found + because)

    return judged


def realized(_: GraphFacts, node: NodeFact) -> Verdict:
    """A buffer of its own holds its value."""
    if node.fate == Fate.UNKNOWN:
        return _unknown(node)
    return _kept(node.fate == Fate.REALIZED, f"{node.name} is {fate_of(node)}")


def never_realized(_: GraphFacts, node: NodeFact) -> Verdict:
    """No buffer of its own holds its value."""
    if node.fate == Fate.UNKNOWN:
        return _unknown(node)
    return _kept(node.fate != Fate.REALIZED, f"{node.name} is {fate_of(node)}")


def never_stored(facts: GraphFacts, node: NodeFact) -> Verdict:
    """Its value takes no memory: not realized, or fused away."""
    if node.fate != Fate.REALIZED:
        return never_realized(facts, node)
    buffer = facts.buffer(node.buffer or "")
    storage = buffer.storage if buffer is not None else Storage.UNKNOWN
    if storage == Storage.UNKNOWN:
        why = (buffer.reason if buffer is not None else None) or "its storage is not known"
        return Outcome.UNDECIDED, f"{node.name} is realized as {node.buffer}: {why}"
    return _kept(storage in (Storage.REMOVED, Storage.NONE), f"{node.name} is kept in {node.buffer} ({storage})")


def not_recomputed(_: GraphFacts, node: NodeFact) -> Verdict:
    """Computed in one place: in its own buffer, or in one loop body."""
    if node.fate == Fate.UNKNOWN:
        return _unknown(node)
    return _kept(not node.recomputed, f"{node.name} is computed in {' and in '.join(node.places) or 'no buffer'}")


def attributed(_: GraphFacts, node: NodeFact) -> Verdict:
    """Its fate is known."""
    if node.fate == Fate.UNKNOWN:
        return Outcome.BROKEN, _unknown(node)[1]
    return Outcome.KEPT, f"{node.name} is {fate_of(node)}"


def fate_of(node: NodeFact) -> str:
    """Its fate with the buffers: `realized as buf0`, `inlined into buf0, buf1`."""
    if node.fate == Fate.REALIZED:
        return f"realized as {node.buffer}"
    return f"inlined into {', '.join(node.inlined_into)}" if node.fate == Fate.INLINED else str(node.fate)


def _unknown(node: NodeFact) -> Verdict:
    return Outcome.UNDECIDED, f"the fate of {node.name} is not known: {node.reason or 'no reason recorded'}"


def _kept(holds: bool, found: str) -> Verdict:
    return Outcome.KEPT if holds else Outcome.BROKEN, found


# -------------------------------------------------------------------------------------------------- fused, not fused


@dataclass(frozen=True, slots=True)
class Placed:
    """A node and the groups that compute it; `unknown` says why that may not be all of them."""

    node: NodeFact
    groups: tuple[str, ...]
    unknown: str | None = None


def placed(facts: GraphFacts, node: NodeFact) -> Placed:
    """Where a node is computed: in the groups of its own buffer and of those that it is inlined into."""
    if node.fate == Fate.UNKNOWN:
        return Placed(node, (), _unknown(node)[1])
    groups, unknown = [], None
    for name in dict.fromkeys((*((node.buffer,) if node.buffer else ()), *node.inlined_into)):
        buffer = facts.buffer(name)
        if buffer is not None and buffer.group is not None:
            groups.append(buffer.group)
        else:
            why = buffer.reason if buffer is not None and buffer.reason else "the post-fusion dump does not show it"
            unknown = f"the group of {name}, which computes {node.name}, is not known: {why}"
    return Placed(node, tuple(dict.fromkeys(groups)), unknown)


def fused(clause: Clause, scope: Scope) -> Iterator[Judgement]:
    """There is one group that computes all items, in every graph that has all of them."""
    yield from scope.unknown(clause.items)
    found = [(facts, [scope.selected(item, facts) for item in clause.items]) for facts in scope.graphs]
    whole = [(facts, items) for facts, items in found if all(items)]
    for facts, items in whole:
        yield _judge_fused(facts, [node for nodes in items for node in nodes], scope.why(facts))
    if not whole and not any(True for _ in scope.unknown(clause.items)):
        yield Judgement(Outcome.UNDECIDED, "no graph has all of these items", place=clause.location)


def _judge_fused(facts: GraphFacts, nodes: Sequence[NodeFact], because: Because) -> Judgement:
    """Views and what was folded are computed nowhere, and so in no group."""
    items = [placed(facts, node) for node in dict.fromkeys(nodes) if node.fate not in _NO_COMPUTATION]
    if not items:
        return told(
            facts, nodes[0], Outcome.UNDECIDED, "all of these items are views or folded: no group computes them"
        )
    certain = [item for item in items if item.unknown is None]
    common = set.intersection(*(set(item.groups) for item in certain)) if certain else None
    outsider = next((item for item in certain[1:] if not set(item.groups) & set(certain[0].groups)), None)
    if outsider is not None or common == set():
        other = outsider or certain[-1]
        why = because.apart(certain[0].groups[0], other.groups[0]) if certain[0].groups and other.groups else ""
        return told(facts, other.node, Outcome.BROKEN, f"{_where(certain[0])}, {_where(other)}{why}")
    doubt = next((item for item in items if item.unknown is not None), None)
    if doubt is not None:
        return told(facts, doubt.node, Outcome.UNDECIDED, doubt.unknown or "")
    return told(facts, items[0].node, Outcome.KEPT, f"all in {', '.join(sorted(common or ()))}")


def apart(clause: Clause, scope: Scope) -> Iterator[Judgement]:
    """No group computes two of the items, in every graph that has more than one of them."""
    yield from scope.unknown(clause.items)
    for facts in scope.graphs:
        nodes = dict.fromkeys(node for item in clause.items for node in scope.selected(item, facts))
        items = [placed(facts, node) for node in nodes if node.fate not in _NO_COMPUTATION]
        for number, one in enumerate(items):
            yield from (_judge_apart(facts, one, other) for other in items[:number])


def _judge_apart(facts: GraphFacts, one: Placed, other: Placed) -> Judgement:
    shared = [group for group in one.groups if group in other.groups]
    if shared:
        both = f"{other.node.name} and {one.node.name} are both in {', '.join(shared)}"
        return told(facts, one.node, Outcome.BROKEN, both)
    doubt = one.unknown or other.unknown
    if doubt:
        return told(facts, one.node, Outcome.UNDECIDED, doubt)
    return told(facts, one.node, Outcome.KEPT, f"{_where(other)}, {_where(one)}")


def _where(item: Placed) -> str:
    return f"{item.node.name} is computed in {', '.join(item.groups) or 'no group'}"
