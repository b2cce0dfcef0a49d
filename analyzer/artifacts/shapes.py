"""Parse each shape of text once: a text whose numbers are lifted out, and records that know where to put them back.

Two nodes of a dump mostly differ in their numbers alone. The i-th run of digits is replaced by the i-th letter of a
block of ideographs that no dump uses. To a grammar these are letters of a name like digits are, so the shape parses as
the text does; the strings of its records then hold the letters where the text has numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

from analyzer.model import Layout, Location, Size, Statement

_FIRST, _LAST = 0x20000, 0x2A6D0
HOLES = _LAST - _FIRST
"""How many numbers a text may hold to have a shape."""

_HOLE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_RUN = re.compile(f"[0-9]+|{_HOLE.pattern}")
_NUMBER = re.compile(f"-?(?:[0-9]+|([{chr(_FIRST)}-{chr(_LAST)}]))")
# Translating bytes by a table is several times faster than a regular expression.
_DIGITS = frozenset(b"0123456789")
_DIGITS_TO_ZERO = bytes(ord("0") if code in _DIGITS else code for code in range(256))
_OTHERS_TO_BLANK = bytes(code if code in _DIGITS else ord(" ") for code in range(256))
_LONGEST_NUMBER = 1000
_LONGEST_KEY = 40
_MOST_RECORDS = 256
_MOST_REMEMBERED = 4096
_RECURRING = (Layout, Statement)
"""Records without a place of their own that mostly equal an earlier one; of others a memory would not pay."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

Numbers = tuple[str, ...]
Filler = Callable[[Numbers, str, int], Any]
"""(all numbers of the text, file, line before the text's first) → the filled value."""


class Memory(dict[_Key, _Value]):
    """What was read before. Once it is full it forgets everything: nothing grows with the number of runs read."""

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        super().__setitem__(key, value)


class Number(str):
    """A text that is a number once its hole is filled."""

    __slots__ = ()


def number(text: str) -> Size:
    """An int where the text is one (and not absurdly long), else the text."""
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _LONGEST_NUMBER:
        return text
    return Number(text) if match[1] else int(text)


def split_numbers(text: str) -> tuple[str, Numbers]:
    """A key that is equal for texts of one shape (every run of digits is a 0 in it), and the runs.

    Of a shape the letters count as runs: filled in as if they were its numbers, they give the shape's own record.
    """
    if not text.isascii():
        return _RUN.sub("0", text), tuple(_RUN.findall(text))
    return without_numbers(text), tuple(text.encode().translate(_OTHERS_TO_BLANK).decode().split())


def without_numbers(text: str) -> str:
    """An ASCII text with a 0 for every run of digits."""
    key = text.encode().translate(_DIGITS_TO_ZERO).replace(b"0000", b"0").replace(b"00", b"0").replace(b"00", b"0")
    while b"00" in key:
        key = key.replace(b"00", b"0")
    return key.decode()


def has_holes(text: str) -> bool:
    """Whether the text itself uses the letters that stand for numbers."""
    return not text.isascii() and _HOLE.search(text) is not None


def shape_of(text: str) -> str:
    """The text with its i-th run of digits (or letter, of a piece of a shape) replaced by the i-th letter."""
    holes = map(chr, range(_FIRST, _LAST))
    return _RUN.sub(lambda _match: next(holes), text)


def holes_of(text: str) -> range:
    """Which numbers a piece of a shape holds; pieces are contiguous."""
    found = _HOLE.findall(text)
    return range(ord(found[0]) - _FIRST, ord(found[-1]) - _FIRST + 1) if found else range(0)


def filler(value: Any) -> Filler:
    """How to fill in a record made from a shape; parts that hold no number and no place are shared as they are."""
    plan = _plan(value)
    return plan.fill if plan else lambda _numbers, _file, _line: value


class _Plan(NamedTuple):
    """How to fill a part, and `start` and `stop` of the numbers it holds."""

    fill: Filler
    start: int
    stop: int


def _plan(value: Any) -> _Plan | None:
    if isinstance(value, str):
        return _text_plan(value)
    if isinstance(value, Location):
        return _location_plan(value)
    if isinstance(value, tuple):
        return _parts_plan(value, getattr(type(value), "_make", tuple))
    if is_dataclass(value):
        return _record_plan(value)
    return None


def _record_plan(record: Any) -> _Plan | None:
    record_class = type(record)
    values = tuple(getattr(record, field.name) for field in fields(record))
    plan = _parts_plan(values, lambda filled: record_class(*filled))
    recurs = plan is not None and isinstance(record, _RECURRING) and plan.stop - plan.start <= _LONGEST_KEY
    return plan._replace(fill=_remembering(plan.fill, plan.start, plan.stop)) if plan and recurs else plan


def _text_plan(text: str) -> _Plan | None:
    held = holes_of(text)
    if not held:
        return None
    start, stop = held.start, held.stop
    if isinstance(text, Number):
        sign = text[:-1]
        return _Plan(lambda numbers, _file, _line: number(sign + numbers[start]), start, stop)
    template = _HOLE.sub("%s", text.replace("%", "%%"))
    if len(held) == 1:
        return _Plan(lambda numbers, _file, _line: template % numbers[start], start, stop)
    return _Plan(lambda numbers, _file, _line: template % numbers[start:stop], start, stop)


def _location_plan(place: Location) -> _Plan:
    relative, column = place.line, place.column
    return _Plan(lambda _numbers, file, line: Location(file, line + relative, column), HOLES, 0)


def _parts_plan(values: tuple[Any, ...], make: Callable[[list[Any]], Any]) -> _Plan | None:
    plans = [(slot, plan) for slot, plan in enumerate(map(_plan, values)) if plan]
    if not plans:
        return None
    open_slots = [(slot, plan.fill) for slot, plan in plans]

    def fill_all(numbers: Numbers, file: str, line: int) -> Any:
        filled = list(values)
        for slot, fill_slot in open_slots:
            filled[slot] = fill_slot(numbers, file, line)
        return make(filled)

    return _Plan(fill_all, min(plan.start for _, plan in plans), max(plan.stop for _, plan in plans))


def _remembering(fill: Filler, start: int, stop: int) -> Filler:
    """Equal numbers give the record already made."""
    known: dict[Numbers, Any] = {}

    def recall(numbers: Numbers, file: str, line: int) -> Any:
        key = numbers[start:stop]
        found = known.get(key)
        if found is None:
            found = fill(numbers, file, line)
            if len(known) < _MOST_RECORDS:
                known[key] = found
        return found

    return recall
