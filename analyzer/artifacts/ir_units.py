"""A node put together from the shapes of its entries: few lines of a dump are new, even where a node is.

The grammar's own rules parse each piece (an attribute, a buffer, a statement) once; the builder's own methods join the
records. Whatever does not fall into lines as Inductor prints them is left to the grammar as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from analyzer.artifacts.ir_builder import NodeBuilder, attribute
from analyzer.artifacts.ir_terms import NodeError
from analyzer.artifacts.shapes import Filler, Memory, filler, shape_of, split_numbers
from analyzer.model import DumpNode

RULES = ("node", "header", "entry", "buffer", "body_head", "index", "block_head", "statement", "ending")
"""The grammar's rules that are parsed by themselves."""

PieceParser = Callable[[str, str], "tuple[Any, list[tuple[str, str]]]"]
"""(rule, text) → the rule's record, and pairs of names that must agree; raises UnparsedError."""

_OUTPUTS = re.compile(r"\s*(\w+)\.outputs = \[\s*")
_BUFFER = re.compile(r"\s*\w+:\s")
_INDEX = re.compile(r"\s*index[^\W_]+ = ")


class UnparsedError(Exception):
    """A piece that does not parse by itself."""


_pieces: Memory[tuple[str, str], Filler] = Memory()


def assemble(text: str, parse: PieceParser, file: str, line: int) -> tuple[DumpNode, list[tuple[str, str]]] | None:
    """The node of a text or of a shape, and the names in it that must agree; None if it does not fall into pieces.

    `file` and `line` (how many are before the text) go into its places.
    """
    try:
        return _Assembly(text, parse, file, line).node()
    except (UnparsedError, NodeError, IndexError):
        return None


class _Assembly:
    """Walks the lines of one node; an IndexError means that they end too early."""

    def __init__(self, text: str, parse: PieceParser, file: str, line: int) -> None:
        self._lines = text.split("\n")
        self._file = file
        self._line = line
        self._at = 0
        self._parse = parse
        self._builder = NodeBuilder("")
        self._same: list[tuple[str, str]] = []

    def node(self) -> tuple[DumpNode, list[tuple[str, str]]]:
        children = [self._piece("header", 1)]
        while self._at < len(self._lines):
            children.append(self._entry())
        node = self._builder.node(children)
        return node, self._same + [(name, str(owner)) for name, owner in self._builder.same]

    def _entry(self) -> Any:
        line = self._lines[self._at]
        outputs = _OUTPUTS.fullmatch(line)
        if outputs:
            return self._outputs(outputs[1])
        return self._loop_body() if line.lstrip().startswith("class ") else self._piece("entry")

    def _outputs(self, owner: str) -> Any:
        self._at += 1
        buffers = []
        while self._lines[self._at].strip() != "]":
            first = end = self._at
            end = self._value_end(end)
            while self._lines[end].strip() != "]" and not _BUFFER.match(self._lines[end]):
                end = self._value_end(end)
            buffers.append(self._piece("buffer", end - first))
        self._at += 1
        return attribute("buffers", tuple(buffers), owner)

    def _loop_body(self) -> Any:
        children = [self._piece("body_head", self._value_end(self._at + 1) - self._at)]
        while _INDEX.match(self._lines[self._at]):
            children.append(self._piece("index"))
        children.append(self._block())
        while self._at < len(self._lines) and self._lines[self._at].lstrip().startswith("def "):
            children.append(self._block())
        return self._builder.loop_body(children)

    def _block(self) -> Any:
        children = [self._piece("block_head", 1)]
        while not self._lines[self._at].lstrip().startswith(("return", "pass")):
            children.append(self._piece("statement"))
        children.append(self._piece("ending", 1))
        return self._builder.block(children)

    def _value_end(self, line: int) -> int:
        """The line after a value that begins in this line: brackets are closed by then."""
        open_brackets = 0
        while True:
            text = self._lines[line]
            open_brackets += sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))
            line += 1
            if open_brackets <= 0 and not text.rstrip().endswith("="):
                return line

    def _piece(self, rule: str, lines: int | None = None) -> Any:
        """The record of the next lines, parsed only if no piece of their shape was seen before."""
        first = self._at
        self._at = first + lines if lines else self._value_end(first)
        text = "\n".join(self._lines[first : self._at])
        key, numbers = split_numbers(text)
        fill = _pieces.get((rule, key))
        if fill is None:
            fill = _pieces[rule, key] = self._filler(rule, text)
        record, same = fill(numbers, self._file, self._line + first)
        self._same += same
        return record

    def _filler(self, rule: str, text: str) -> Filler:
        record, same = self._parse(rule, shape_of(text))
        return filler((record, tuple((name, str(owner)) for name, owner in same)))
