"""What became of an op, in words."""

from __future__ import annotations

from analyzer.facts import BufferFact, Evidence, Fate, NodeFact, Storage
from analyzer.views.text import listed, plain

_STORAGE = {
    Storage.REMOVED: "fused away",
    Storage.OUTPUT: "output",
    Storage.ALIAS: "alias",
    Storage.NONE: "no tensor",
    Storage.UNKNOWN: "storage unknown",
}


def fate_text(fact: NodeFact, buffer: BufferFact | None, full: bool = False) -> str:
    """The fate in words: `inlined into buf0`, `recomputed in buf3, buf7`, `realized as buf0 (output)`."""
    text = _fate_words(fact, buffer, full)
    reason = f": {plain(fact.reason)}" if fact.reason and fact.fate in (Fate.UNKNOWN, Fate.FOLDED) else ""
    guess = " (a guess from the kernel's name)" if fact.evidence == Evidence.NAME else ""
    return text + reason + guess


def _fate_words(fact: NodeFact, buffer: BufferFact | None, full: bool) -> str:
    if fact.fate == Fate.REALIZED:
        where = f"realized as {plain(fact.buffer or '?')}{_stored(buffer)}"
        return f"{where}, again inside {listed(fact.inlined_into, full=full)}" if fact.inlined_into else where
    if fact.fate == Fate.INLINED:
        verb = "recomputed in" if len(fact.inlined_into) > 1 else "inlined into"
        return f"{verb} {listed(fact.inlined_into, full=full) or '?'}"
    if fact.fate == Fate.VIEW and fact.buffer is not None:
        return f"view of {plain(fact.buffer)}"
    return str(fact.fate)


def _stored(buffer: BufferFact | None) -> str:
    if buffer is None or buffer.storage == Storage.ALLOCATED:
        return ""
    if buffer.storage == Storage.REUSED:
        return f" (in the memory of {plain(buffer.shares_memory_with or '?')})"
    return f" ({_STORAGE[buffer.storage]})"
