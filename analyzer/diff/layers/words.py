"""How facts read in a change: a few words, with Inductor's own names."""

from __future__ import annotations

from analyzer.diff.matching import GraphSide
from analyzer.facts import BufferFact, Fate, NodeFact, Storage

_FATES = {
    Fate.VIEW: "a view",
    Fate.INPUT: "an input",
    Fate.CONSTANT: "a constant",
    Fate.FOLDED: "folded away",
    Fate.UNKNOWN: "unknown",
}
_STORAGE = {
    Storage.ALLOCATED: "allocated",
    Storage.REUSED: "reuses memory",
    Storage.REMOVED: "removed by fusion",
    Storage.OUTPUT: "returned",
    Storage.ALIAS: "an alias",
    Storage.NONE: "no memory",
    Storage.UNKNOWN: "storage unknown",
}


def fate_text(fact: NodeFact) -> str:
    """`realized as buf0`, `inlined into buf1, buf2`, `a view`."""
    if fact.fate == Fate.REALIZED:
        return f"realized as {fact.buffer}" if fact.buffer else "realized"
    if fact.fate == Fate.INLINED:
        return f"inlined into {', '.join(fact.inlined_into) or 'other buffers'}"
    return _FATES[fact.fate]


def home_text(fact: BufferFact) -> str:
    """`allocated`, `returned, in the memory of buf3`. What no group computes was dead before there were any."""
    if fact.storage == Storage.REMOVED and fact.group is None:
        return "dead before scheduling"
    words = _STORAGE[fact.storage]
    if fact.shares_memory_with is None:
        return words
    of = f"the memory of {fact.shares_memory_with}"
    return f"reuses {of}" if fact.storage == Storage.REUSED else f"{words}, in {of}"


def arrival_text(fact: NodeFact, side: GraphSide) -> str:
    """The fate of a node whose counterpart has none or another: with its buffer's memory and group."""
    buffer = side.buffers.get(fact.buffer or "")
    if fact.fate != Fate.REALIZED or buffer is None:
        return fate_text(fact)
    group = f", in group {buffer.group}" if buffer.group and buffer.group != buffer.operation else ""
    home = f" ({home_text(buffer)})" if buffer.storage != Storage.UNKNOWN else ""
    return f"{fate_text(fact)}{group}{home}"
