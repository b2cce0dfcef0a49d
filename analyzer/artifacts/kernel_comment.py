"""The comments above a kernel or a call, as a record (torch/_inductor/utils.py, `get_kernel_metadata`).

Blocks are read by `grammars/kernel_comment.lark`. Equal blocks are read once: layers of a model repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lark import Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from analyzer.artifacts.grammar import load_grammar
from analyzer.artifacts.shapes import HOLES, Filler, filler, has_holes, shape_of, split_numbers
from analyzer.model import Location, Problem, SourceComment

_PREFIX = re.compile(r"[ \t]*(?:#|//) ?")
_HANDLE = re.compile(r"\[Provenance debug handles\] (?P<kernel>\S+):(?P<number>[0-9]{1,18})")
_RELEVANT = re.compile(r"Source Nodes:|Source node to|^ +|\[Provenance|Graph fragment|AOT ID")
_MAX_BAD_LINES = 20
_MAX_EXCERPT = 200
_NOTHING = SourceComment()


@dataclass(frozen=True, slots=True)
class BadLine:
    """A comment line that starts like a known one and goes on otherwise; `index` counts from 0 within the block."""

    index: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class CommentBlock:
    """What a run of comment lines says; `handle` is (kernel key, debug handle), from torch 2.9 on."""

    comment: SourceComment = _NOTHING
    handle: tuple[str, int] | None = None
    aot_id: str | None = None
    bad: tuple[BadLine, ...] = ()

    def of_call(self, owned: bool) -> tuple[SourceComment, int | None]:
        """The comment and the debug handle for a call; a handle of another kernel takes the comment with it."""
        if self.handle is None:
            return self.comment, None
        return (self.comment, self.handle[1]) if owned else (_NOTHING, None)

    def problems(self, file: str, lines: Sequence[str], numbers: Sequence[int]) -> list[Problem]:
        """The bad lines as problems; `lines` and their `numbers` are those that were read."""
        return [
            Problem(Location(file, numbers[bad.index], bad.column), bad.message, excerpt_of(lines[bad.index]))
            for bad in self.bad
        ]


def excerpt_of(line: str) -> str:
    """A line as a problem shows it: not longer than a few screen lines."""
    return line if len(line) <= _MAX_EXCERPT else f"{line[:_MAX_EXCERPT]}..."


def read_comment(lines: Sequence[str]) -> CommentBlock:
    """Read source lines that hold nothing but a `#` or `//` comment; columns count in these lines, from 1."""
    cuts = [match.end() if (match := _PREFIX.match(line)) else 0 for line in lines]
    bodies = [line[cut:].rstrip() for line, cut in zip(lines, cuts, strict=True)]
    kept = [index for index, body in enumerate(bodies) if _RELEVANT.search(body)]
    if not kept:
        return CommentBlock()
    block = _read_quickly([bodies[index] for index in kept]) or _read_block("\n".join(bodies[i] for i in kept))
    if not block.bad:
        return block
    bad = tuple(BadLine(kept[b.index], b.column + cuts[kept[b.index]], b.message) for b in block.bad)
    return CommentBlock(block.comment, block.handle, block.aot_id, bad)


def _read_quickly(lines: list[str]) -> CommentBlock | None:
    """The handle by its pattern and the rest by its shape: blocks differ by numbers; None where that does not do."""
    handles = [match for line in lines if (match := _HANDLE.fullmatch(line))]
    text = "\n".join(line for line in lines if not _HANDLE.fullmatch(line))
    key, numbers = split_numbers(text)
    if len(numbers) >= HOLES or has_holes(text):
        return None
    fill = _shape(key, shape_of(text))
    if fill is None:
        return None
    block: CommentBlock = fill(numbers, "", 0)
    if not handles:
        return block
    return CommentBlock(block.comment, (handles[-1]["kernel"], int(handles[-1]["number"])), block.aot_id)


@lru_cache(maxsize=4096)
def _shape(key: str, shape: str) -> Filler | None:
    """How to fill the record of a shape; a block with a bad line or with a handle of another form has none."""
    block = _read_block(shape) if key else CommentBlock()
    plain = _read_block(key) if key else CommentBlock()
    return None if block.bad or block.handle or plain.bad or plain.handle else filler(block)


@lru_cache(maxsize=4096)
def _read_block(text: str) -> CommentBlock:
    """Parse stripped comment lines; a line that does not parse is noted and left out of the next try."""
    lines = text.split("\n")
    bad: list[BadLine] = []
    while True:
        try:
            return _block_of(load_grammar("kernel_comment").parse("\n".join(lines)), tuple(bad))
        except UnexpectedInput as error:
            index, column = _position(error, lines)
            bad.append(BadLine(index, column, _expectation(lines[index])))
            lines[index] = "-"
            if len(bad) == _MAX_BAD_LINES:
                return CommentBlock(bad=tuple(bad))


def _position(error: UnexpectedInput, lines: list[str]) -> tuple[int, int]:
    """The line (from 0) and column (from 1) where the grammar stopped; a line break belongs to the line it ends."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end or error.line < 1:
        return len(lines) - 1, len(lines[-1]) + 1
    return error.line - 1, error.column


def _expectation(line: str) -> str:
    if "Source Nodes:" in line:
        return "expected `Source Nodes: [names], Original ATen: [names]`"
    if line.startswith("[Provenance"):
        return "expected `[Provenance debug handles] KERNEL:NUMBER`"
    if line.startswith("AOT ID"):
        return "expected `AOT ID: ['NAME']`"
    return "expected a line of a graph fragment: `%name : .. = op[target=..]` or `return %name,..`"


def _block_of(tree: Tree[Token], bad: tuple[BadLine, ...]) -> CommentBlock:
    found: dict[str, list[Tree[Token]]] = {}
    for line in tree.children:
        if isinstance(line, Tree):
            found.setdefault(str(line.data), []).append(line)
    return CommentBlock(_comment_of(found), _handle_of(found), _aot_id_of(found), bad)


def _comment_of(found: dict[str, list[Tree[Token]]]) -> SourceComment:
    fragment = [_fragment_node(line) for line in found.get("fragment", [])]
    returned = found.get("returns")
    return SourceComment(
        source_nodes=_listed(found, "source_nodes"),
        original_aten=_listed(found, "original_aten"),
        node_map=tuple(_mapping(line) for line in found.get("mapping", [])),
        fragment=tuple(name for name, is_placeholder in fragment if not is_placeholder),
        placeholders=tuple(name for name, is_placeholder in fragment if is_placeholder),
        returns=None if returned is None else tuple(name[1:] for line in returned for name in _tokens(line)),
    )


def _tokens(tree: Tree[Token]) -> list[str]:
    return [str(child) for child in tree.children if isinstance(child, Token)]


def _names(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for token in tokens if (name := token.strip()))


def _listed(found: dict[str, list[Tree[Token]]], which: str) -> tuple[str, ...]:
    lists = [part for line in found.get("sources", []) for part in line.find_data(which)]
    return _names([token for part in lists for token in _tokens(part)])


def _mapping(line: Tree[Token]) -> tuple[str, tuple[str, ...]]:
    """`layer_norm => add, add_1`; the name is empty for nodes without a source."""
    head, *nodes = _tokens(line)
    return head.partition("=>")[0].strip(), _names(nodes)


def _fragment_node(line: Tree[Token]) -> tuple[str, bool]:
    parts = {token.type: str(token) for token in line.children if isinstance(token, Token)}
    return parts["DEFINED"].strip(" %:"), "placeholder" in parts["OP"].lower()


def _handle_of(found: dict[str, list[Tree[Token]]]) -> tuple[str, int] | None:
    if "handle" not in found:
        return None
    key, number = _tokens(found["handle"][-1])
    return key.strip(), int(number[:18])


def _aot_id_of(found: dict[str, list[Tree[Token]]]) -> str | None:
    return _tokens(found["aot_id"][0])[0].strip("'") if "aot_id" in found else None
