"""Loop bodies in a form in which only the computation counts (torch/_inductor/loop_body.py writes them).

A value is the expression that makes it, so the names of intermediates and the order of independent statements vanish;
loops count by position, those that continue each other as one, and buffers are what the caller says they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from analyzer.diff.loops import merged_loops
from analyzer.diff.symbols import renamed
from analyzer.model import Block, LoopBody, Statement

Naming = Callable[[str], str]
"""From a buffer's or input's own name to one that means the same in both runs."""

_VARIABLE = re.compile(r"\b[a-z]\d+\b")
_WORD = re.compile(r"\w+")
_INDIRECT = re.compile(r"\bindirect\d+\b")
_COMMUTATIVE = frozenset(
    {"add", "mul", "maximum", "minimum", "eq", "ne", "logical_and", "logical_or", "logical_xor"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor"}
)
_DEFAULTS = frozenset({("use_compute_types", "True")})
"""Keyword arguments that only some versions print at their default (torch/_inductor/ops_handler.py, `to_dtype`)."""

_MOST, _DEEPEST = 20_000, 50
"""Statements, and subblocks inside each other, that are still compared by what they compute."""


def canonical_body(body: LoopBody, naming: Naming, symbols: Mapping[str, str], places: bool = True) -> Hashable:
    """Equal for bodies that compute the same: their ranges, and their effects in any order.

    `places`: whether it counts over which ranges, and at which indices values are loaded and stored.
    """
    least = merged_loops(body)
    loops = _Loops(least, naming, symbols, places)
    ranges = tuple(renamed(str(size), symbols) for _, size in least.ranges) if places else ()
    effects = Counter(effect for block in least.blocks[:1] for effect in loops.effects(block))
    return ranges, frozenset(effects.items())


@dataclass
class _Loops:
    body: LoopBody
    naming: Naming
    symbols: Mapping[str, str]
    places: bool = True
    indirect: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.positions = {name: f"i{position}" for position, (name, _) in enumerate(self.body.ranges)}
        self.indices = dict(self.body.indices)
        self.blocks = {block.name: block for block in self.body.blocks[1:]}
        self.budget = _MOST

    def effects(self, block: Block) -> list[Hashable]:
        """The values that no other statement of the block takes: stores, assertions, and results."""
        values: dict[str, Hashable] = {}
        taken: set[str] = set()
        for statement in block.statements:
            self.budget -= 1
            value = self._value(statement, values, taken)
            values[statement.result or f"line {len(values)}"] = value
        return [value for name, value in values.items() if name not in taken and value is not None]

    def _value(self, statement: Statement, values: Mapping[str, Hashable], taken: set[str]) -> Hashable:
        """A hash of the expression; None for a bare `return`, whose value the store before it already is."""
        op, args = statement.op, statement.args
        if op == "return" and not (args and args[0] in values):
            return None
        if op == "get_index":
            return hash(("index", self._index(args[0] if args else "")))
        terms: list[Hashable] = [self._term(arg, values, taken) for arg in args]
        if op in ("load", "store", "store_reduction", "index_expr", "bucketize") and args:
            terms[0] = values[args[0]] if args[0] in values else self.naming(args[0])
        if op == "set_indirect" and args:
            self.indirect[args[0].removeprefix("set_")] = str(hash(tuple(terms[1:])))
            terms[0] = "indirect"
        if op == "masked_subblock" and args:
            terms[0] = self._block(args[0])
        if op == "return":
            return terms[0]
        if op in _COMMUTATIVE:
            terms.sort(key=str)
        kwargs = tuple((key, self._term(v, values, taken)) for key, v in statement.kwargs if (key, v) not in _DEFAULTS)
        return hash((op, tuple(terms), kwargs))

    def _term(self, text: str, values: Mapping[str, Hashable], taken: set[str]) -> Hashable:
        if text in values:
            taken.add(text)
            return values[text]
        if not text.startswith("("):
            return renamed(text, self.symbols)
        names = [name for name in _WORD.findall(text) if name in values]
        taken.update(names)
        return _WORD.sub(lambda match: str(values.get(match[0], match[0])), text)

    def _block(self, name: str) -> Hashable:
        block = self.blocks.get(name)
        if block is None or self.budget < 0 or name in self.open or len(self.open) > _DEEPEST:
            return name
        self.open.append(name)
        value = hash(frozenset(Counter(self.effects(block)).items()))
        self.open.pop()
        return value

    def _index(self, name: str) -> str:
        if not self.places:
            return ""
        text = self.indices.get(name, name)
        text = _VARIABLE.sub(lambda match: self.positions.get(match[0], match[0]), text)
        text = _INDIRECT.sub(lambda match: f"[{self.indirect.get(match[0], match[0])}]", renamed(text, self.symbols))
        return " + ".join(sorted(text.split(" + "))) if "(" not in text else text


_PLUMBING = frozenset({"get_index", "return", "load", "store", "store_reduction", "getitem"})


def operations(body: LoopBody) -> Counter[str]:
    """What a body computes, by name and without order; a reduction by what it reduces with."""
    found = (s.args[2] if s.op == "reduction" and len(s.args) > 2 else s.op for s in body.statements())
    return Counter(op for op in found if op not in _PLUMBING)


def readable_body(body: LoopBody, naming: Naming) -> tuple[str, ...]:
    """The statements as lines to read side by side: indices written out, loops and intermediates numbered anew."""
    return tuple(_lines(merged_loops(body), naming))


def _lines(body: LoopBody, naming: Naming) -> Iterator[str]:
    indices, names, numbers = dict(body.indices), dict[str, str](), count()
    yield f"for {', '.join(f'{name} in {size}' for name, size in body.ranges)}:"
    for block in body.blocks:
        if block.name != "body":
            yield f"{block.name}:"
        for statement in block.statements:
            if statement.op == "get_index" and statement.result:
                text = statement.args[0] if statement.args else ""
                names[statement.result] = f"[{indices.get(text, text)}]"
            elif statement.op != "return":
                yield _line(statement, names, naming, numbers)


def _line(statement: Statement, names: dict[str, str], naming: Naming, numbers: Iterator[int]) -> str:
    args = [_WORD.sub(lambda match: names.get(match[0], match[0]), arg) for arg in statement.args]
    if statement.op in ("load", "store", "store_reduction") and args:
        args[0] = naming(args[0])
    if statement.op in _COMMUTATIVE:
        args.sort(key=lambda arg: (len(arg), arg))
    args += [f"{key}={names.get(value, value)}" for key, value in statement.kwargs if (key, value) not in _DEFAULTS]
    call = f"{statement.op}({', '.join(arg for arg in args if arg != 'None')})"
    if statement.result is None or statement.op.startswith("store"):
        return call
    names[statement.result] = f"v{next(numbers)}"
    return f"{names[statement.result]} = {call}"
