"""Loops that count on where the one inside them ends, as one loop.

Whether `[64*p0 + p1]` over 64 × 64 is written so or as `[p0]` over 4096 depends on when a version merges loops
(torch/_inductor/sizevars.py, `_simplify_loops`), not on what is computed. The order of loops stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from analyzer.model import LoopBody, Size

_WORD = re.compile(r"\b[a-z]\d+\b")
_FACTOR = re.compile(r"[a-z]\d+|\d{1,18}")


def merged_loops(body: LoopBody) -> LoopBody:
    """The body with as few loops as can be, numbered from 0."""
    loops = {name: _product_of(str(size)) for name, size in body.ranges if size != 1}
    sums = [_Sum.parse(text, dict(body.ranges)) for _, text in body.indices]
    while (pair := _mergeable(loops, sums)) is not None:
        (outer, size), (inner, count) = pair
        loops[outer] = size.times(count)
        del loops[inner]
        sums = [index.without(outer, inner) for index in sums]
    sizes = {**dict(body.ranges), **{name: product.size() for name, product in loops.items() if product}}
    names = {name: f"{name[0]}{at}" for at, name in enumerate(loops)}
    indices = tuple((name, index.text(names)) for (name, _), index in zip(body.indices, sums, strict=True))
    return replace(body, ranges=tuple((names[name], sizes[name]) for name in loops), indices=indices)


class _Product(NamedTuple):
    """A number times symbols: `64`, `2*s33*s77`."""

    number: int
    symbols: tuple[str, ...] = ()

    def times(self, other: _Product) -> _Product:
        return _Product(self.number * other.number, tuple(sorted(self.symbols + other.symbols)))

    def size(self) -> Size:
        return "*".join(self._factors()) if self.symbols else self.number

    def of(self, name: str) -> str:
        """The product with one more symbol, as Inductor prints it."""
        return "*".join(_Product(self.number, tuple(sorted((*self.symbols, name))))._factors())

    def _factors(self) -> Iterator[str]:
        if self.number != 1 or not self.symbols:
            yield str(self.number)
        yield from self.symbols


_Loops = Mapping[str, _Product | None]


def _product_of(text: str) -> _Product | None:
    factors = text.split("*")
    if not all(_FACTOR.fullmatch(factor) for factor in factors):
        return None
    found = _Product(1)
    for factor in factors:
        found = found.times(_Product(int(factor)) if factor.isdigit() else _Product(1, (factor,)))
    return found


def _mergeable(loops: _Loops, sums: Sequence[_Sum]) -> tuple[tuple[str, _Product], tuple[str, _Product]] | None:
    """A loop and the next inner one that every index steps through as if they were one."""
    for (outer, size), (inner, count) in pairwise(loops.items()):
        if size is not None and count is not None and all(index.continues(outer, inner, count) for index in sums):
            return (outer, size), (inner, count)
    return None


@dataclass(frozen=True, slots=True)
class _Sum:
    """An index: how far a step of each loop moves it, and the terms that are no multiple of one loop variable."""

    steps: Mapping[str, _Product]
    rest: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, loops: Collection[str]) -> _Sum:
        """The sum of a printed index; what is no simple term stays as it is, and the loops in it cannot be merged."""
        steps: dict[str, _Product] = {}
        rest = []
        for term in _terms(text):
            found = _product_of(term)
            names = [name for name in (found.symbols if found else ()) if name in loops]
            if found is not None and len(names) == 1 and names[0] not in steps:
                symbols = tuple(symbol for symbol in found.symbols if symbol != names[0])
                steps[names[0]] = _Product(found.number, symbols)
            else:
                rest.append(term)
        return cls(steps, tuple(rest))

    def continues(self, outer: str, inner: str, count: _Product) -> bool:
        """Whether a step of the outer loop goes as far as all steps of the inner one."""
        if any(name in (outer, inner) for term in self.rest for name in _WORD.findall(term)):
            return False
        one, other = self.steps.get(outer), self.steps.get(inner)
        return one == (other.times(count) if other else None)

    def without(self, outer: str, inner: str) -> _Sum:
        """The index after both became one loop under the outer one's name."""
        steps = {outer if name == inner else name: step for name, step in self.steps.items() if name != outer}
        return _Sum(steps, self.rest)

    def text(self, names: Mapping[str, str]) -> str:
        """The index as Inductor prints it, loops under new names; a loop of one step is at 0."""
        steps = [step.of(names[name]) for name, step in self.steps.items() if name in names]
        rest = [_WORD.sub(lambda match: names.get(match[0], match[0]), term) for term in self.rest]
        return " + ".join((*steps, *rest)).replace(" + -", " - ") or "0"


def _terms(text: str) -> Iterator[str]:
    """The summands, those in brackets whole and those taken off with their sign."""
    depth, start, sign = 0, 0, ""
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if depth == 0 and text.startswith((" + ", " - "), at):
            yield sign + text[start:at]
            start, sign = at + 3, "-" * (text[at + 1] == "-")
    yield sign + text[start:]
