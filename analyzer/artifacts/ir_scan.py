"""Cuts an IR dump into nodes with one cheap scan: a node reaches from its header to the next header.

A header is a member's exactly if the line before it is `OWNER.snodes[i] =`; indentation says nothing (torch 2.1 to 2.3
indent members, later versions do not).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The end of a header's line. That `: CLASS(` is rare is what makes the scan cheap; its name is checked afterwards.
_CLASSES = re.compile(r": _*[A-Z]\w*\([\w.,]*\)[ \t]*(?=\n|\Z)")
_NAME = re.compile(r"[ \t]*(\w+)")
_MEMBER_OF = re.compile(r"[ \t]*(\w+)\.snodes\[\d+\] =[ \t]*")
# Inside the text between two headers: where something that is no part of the first node may begin.
_BOUNDARY = re.compile(r"\n[ \t]*\n(?=[ \t]*\S)|\n(?=[ \t]*\w+\.snodes\[\d+\] =)")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a dump: a node with its header, or (`name` None) text in front of the first header.

    `text` begins at the header; `line` is the count of lines before that. `owner` is the node whose member it is; the
    line that says so is counted in `lines`, blank lines are not.
    """

    text: str
    line: int
    name: str | None = None
    owner: str | None = None

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return count_lines(self.text) + (self.owner is not None)


def count_lines(text: str) -> int:
    """How many lines are not blank."""
    return sum(1 for line in text.split("\n") if line.strip())


def scan(text: str) -> Iterator[Chunk]:
    """The chunks of a dump in order; together they hold every line that is not blank."""
    begin, line = 0, 0
    name: str | None = None
    owner: str | None = None
    for header, next_name in _headers(text):
        next_owner, end = _owner(text, header)
        yield from _chunk(text[begin:end], line, name, owner)
        line += text.count("\n", begin, header)
        begin, name, owner = header, next_name, next_owner
    yield from _chunk(text[begin:], line, name, owner)


def _headers(text: str) -> Iterator[tuple[int, str]]:
    """Where each header's line starts, and its name."""
    for classes in _CLASSES.finditer(text):
        start = text.rfind("\n", 0, classes.start()) + 1
        name = _NAME.fullmatch(text, start, classes.start())
        if name:
            yield start, name[1]


def _owner(text: str, header: int) -> tuple[str | None, int]:
    """The node whose member a header begins, and where the text of the node before it ends."""
    end = header
    while end > 0:
        start = text.rfind("\n", 0, end - 1) + 1
        if not text[start:end].isspace():
            member_of = _MEMBER_OF.fullmatch(text, start, end - 1)
            return (member_of[1], start) if member_of else (None, header)
        end = start
    return None, header


def _chunk(text: str, line: int, name: str | None, owner: str | None) -> Iterator[Chunk]:
    text = text.rstrip()
    if name is None:
        blank = text[: len(text) - len(text.lstrip())]
        line += blank.count("\n")
        text = text[blank.rfind("\n") + 1 :]
    if text:
        yield Chunk(text, line, name, owner)


def split_at_boundary(chunk: Chunk, line: int) -> tuple[Chunk, Chunk] | None:
    """The node in front of damaged text, and that text: cut at the last boundary up to a line (from 1) of the chunk."""
    text = chunk.text
    end = len("\n".join(text.split("\n", line)[:line]))
    cuts = [match.span() for match in _BOUNDARY.finditer(text, 0, end)]
    if not cuts or chunk.name is None:
        return None
    head_end, tail_start = cuts[-1]
    head = Chunk(text[:head_end].rstrip(), chunk.line, chunk.name, chunk.owner)
    return head, Chunk(text[tail_start:], chunk.line + text.count("\n", 0, tail_start))
