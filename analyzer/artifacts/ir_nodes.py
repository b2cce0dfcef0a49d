"""One scheduler node's text → its record, by the grammar alone or by shape (see shapes.py); both give equal records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from lark import Lark, Tree
from lark.exceptions import UnexpectedInput, VisitError

from analyzer.artifacts.grammar import load_grammar
from analyzer.artifacts.ir_builder import NodeBuilder, position_of
from analyzer.artifacts.ir_messages import BadNodeError, bad_sense, bad_syntax
from analyzer.artifacts.ir_terms import NodeError
from analyzer.artifacts.ir_units import RULES, UnparsedError, assemble
from analyzer.artifacts.shapes import (
    HOLES,
    Filler,
    Memory,
    Numbers,
    filler,
    has_holes,
    holes_of,
    shape_of,
    split_numbers,
)
from analyzer.model import DumpNode, Location

NodeReader = Callable[[str, str, int], DumpNode]
"""(the node's text, file, lines before it) → the record; raises BadNodeError."""

Picker = Callable[[Numbers], Any]

LARGEST_NODE = 2_000_000


@dataclass(frozen=True, slots=True)
class _Template:
    """The record of a shape, and which of its numbers must agree for its names to be the same."""

    fill: Filler
    some: Picker
    others: Picker

    def fits(self, numbers: Numbers) -> bool:
        """Whether the names that must agree do."""
        return bool(self.some(numbers) == self.others(numbers))


_SEEN_ONCE = _Template(lambda _numbers, _file, _line: None, lambda _numbers: None, lambda _numbers: None)
_templates: Memory[str, _Template | None] = Memory()
_nodes: Memory[str, tuple[DumpNode, int]] = Memory()
"""Records by their text, each with the count of lines before it. After fusion the nodes' texts come a second time."""


def read_plain(text: str, file: str, line: int) -> DumpNode:
    """The record of a node, straight from the grammar."""
    node, same = _build("node", text)
    for name, owner in same:
        if name != owner:
            raise bad_sense(text, NodeError(position_of(owner), f"expected an entry of {name}, found one of {owner}"))
    return _moved(node, file, line)


def _moved(node: DumpNode, file: str, lines: int) -> DumpNode:
    """The node of an equal text in another place, so many lines further down."""
    buffers = tuple(replace(buffer, location=_further(buffer.location, file, lines)) for buffer in node.buffers)
    return replace(node, buffers=buffers, location=_further(node.location, file, lines))


def _further(place: Location | None, file: str, lines: int) -> Location | None:
    return Location(file, lines + place.line, place.column) if place else None


def read_by_shape(text: str, file: str, line: int) -> DumpNode:
    """The same record: from an equal text, from the node's shape, or from its entries when both are new.

    What fits no shape goes through the grammar as it is, which then says where and why.
    """
    if text in _nodes:
        known, known_line = _nodes[text]
        return _moved(known, file, line - known_line)
    node = _read_new(text, file, line)
    _nodes[text] = node, line
    return node


def _read_new(text: str, file: str, line: int) -> DumpNode:
    key, numbers = split_numbers(text)
    if len(numbers) >= HOLES or has_holes(text):
        return read_plain(text, file, line)
    if key not in _templates:
        _templates[key] = _SEEN_ONCE
        return _read_entries(text, file, line) or read_plain(text, file, line)
    template = _templates[key]
    if template is _SEEN_ONCE:
        template = _templates[key] = _template(text)
    if template is None or not template.fits(numbers):
        return read_plain(text, file, line)
    node: DumpNode = template.fill(numbers, file, line)
    return node


def _read_entries(text: str, file: str, line: int) -> DumpNode | None:
    node, same = assemble(text, _piece, file, line) or (None, [])
    return node if all(name == owner for name, owner in same) else None


def _template(text: str) -> _Template | None:
    shape = shape_of(text)
    try:
        node, same = assemble(shape, _piece, "", 0) or _build("node", shape)
    except BadNodeError:
        return None
    if not all(split_numbers(name)[0] == split_numbers(owner)[0] for name, owner in same):
        return None
    pairs = {pair for name, owner in same for pair in zip(holes_of(name), holes_of(owner), strict=True)}
    return _Template(filler(node), _picker([one for one, _ in pairs]), _picker([other for _, other in pairs]))


def _picker(positions: list[int]) -> Picker:
    return itemgetter(*positions) if positions else lambda _numbers: None


def _piece(rule: str, text: str) -> tuple[Any, list[tuple[str, str]]]:
    try:
        return _build(rule, text)
    except BadNodeError as error:
        raise UnparsedError(rule) from error


def _build(rule: str, text: str) -> tuple[Any, list[tuple[str, str]]]:
    """The record of a rule of the grammar, and pairs of names that must agree."""
    if len(text) > LARGEST_NODE:
        raise BadNodeError(1, 1, f"expected a node of at most {LARGEST_NODE} characters, found {len(text)}")
    builder = NodeBuilder(text)
    try:
        tree = _grammar().parse(text, start=rule)
        return builder.transform(tree) if isinstance(tree, Tree) else tree, builder.same
    except UnexpectedInput as error:
        raise bad_syntax(text, error, _grammar()) from error
    except VisitError as error:
        if isinstance(error.orig_exc, NodeError):
            raise bad_sense(text, error.orig_exc) from error
        raise


def _grammar() -> Lark:
    return load_grammar("ir_dump", RULES)
