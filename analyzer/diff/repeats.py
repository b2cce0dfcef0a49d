"""Equal changes of repeated layers, told once: what a model does 48 times it also changes 48 times."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from analyzer.diff.records import Change, Repeated, Side

_BUFFERS = re.compile(r"\b(buf|op)\d+(?:(?:_|, )(?:buf|op)\d+)*")
_KERNEL = re.compile(r"\b(cpp|triton)_\w+")
_NAME = re.compile(r"[A-Za-z]\w*")
_TYPE = re.compile(r"b?float\d+\w*|u?int\d+|complex\d+|i\d+")


def collapse(changes: Iterable[Change]) -> tuple[Repeated, ...]:
    """Changes that differ in numbered names alone, together, in the order of their first occurrence."""
    found: dict[Hashable, list[Change]] = {}
    for change in changes:
        found.setdefault(_sketch(change), []).append(change)
    return tuple(Repeated(first, tuple(others)) for first, *others in found.values())


_SIMPLE = {"storage": True, "hints": False}
"""Aspects of which alone, and not of what it is a property, repeats are told; whether the values count."""


def _sketch(change: Change) -> Hashable:
    ids = frozenset((*change.old.ids, *change.new.ids))
    told = change.kind, change.layer, change.aspect
    if change.aspect in _SIMPLE:
        return told, tuple(_erased(side.text, ids) for side in (change.old, change.new) if _SIMPLE[change.aspect])
    return told, change.subject, tuple(_side(side, ids) for side in (change.old, change.new))


def _side(side: Side, ids: frozenset[str]) -> Hashable:
    return len(side.ids), _erased(side.text, ids), tuple(_erased(line, ids) for line in side.code)


def _erased(text: str, ids: frozenset[str]) -> str:
    """Names without their numbers, lists of buffers however long as one; types such as float32 keep theirs."""
    text = _BUFFERS.sub(r"\1", text)
    text = _KERNEL.sub(r"\1 kernel", text)
    return _NAME.sub(lambda match: match[0] if _TYPE.fullmatch(match[0]) else match[0].rstrip("0123456789_"), text)
