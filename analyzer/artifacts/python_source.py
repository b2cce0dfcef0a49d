"""Python code of an artifact as a standard `ast`: parsed, never run, and never lost as a whole to one bad line."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

_MAX_BAD_LINES = 25
_BAD_LINE = (SyntaxError, ValueError)
_TOO_DEEP = (RecursionError, MemoryError)
_TOP_LEVEL = re.compile(r"[^\s#)\]}'\"]")


@dataclass(slots=True)
class PythonSource:
    """Parsed statements, and what had to be left out: line, column, reason and how many lines."""

    lines: list[str]
    body: list[ast.stmt] = field(default_factory=list)
    bad: list[tuple[int, int, str, int]] = field(default_factory=list)

    def segment(self, node: ast.expr) -> str:
        """The source text of an expression; several lines are joined with single blanks."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if first == last:
            return _cut(self.lines[first], node.col_offset, node.end_col_offset)
        parts = [_cut(self.lines[first], node.col_offset, None), *self.lines[first + 1 : last]]
        parts.append(_cut(self.lines[last], 0, node.end_col_offset))
        return " ".join(part.strip() for part in parts)

    def tail(self, statement: ast.stmt) -> str:
        """What follows a statement on its last line: `; del buf0  # reuse`."""
        return _cut(self.lines[(statement.end_lineno or statement.lineno) - 1], statement.end_col_offset or 0, None)

    def column(self, node: ast.stmt | ast.expr) -> int:
        """Where a node starts in its line, from 1, in characters."""
        return len(_cut(self.lines[node.lineno - 1], 0, node.col_offset)) + 1


def _cut(line: str, start: int, end: int | None) -> str:
    """A slice by the offsets of `ast`, which count bytes of UTF-8."""
    if line.isascii():
        return line[start:end]
    return line.encode("utf-8", "replace")[start:end].decode("utf-8", "replace")


def parse_quietly(code: str) -> list[ast.stmt]:
    """`ast.parse` without the warnings that foreign code's string escapes would print to the user's terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code).body


def parse_python(code: str) -> PythonSource:
    """Parse all of it; on an error parse top-level chunks one by one and leave out only lines that do not parse."""
    source = PythonSource(code.split("\n"))
    try:
        source.body = parse_quietly(code)
    except (*_BAD_LINE, *_TOO_DEEP):
        for start, lines in _chunks(source.lines):
            _parse_chunk(source, start, lines)
    return source


def _chunks(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Runs of lines that each start with a statement at column 0, with the number of lines before them."""
    starts = [0] + [number for number, line in enumerate(lines) if number and _TOP_LEVEL.match(line)]
    ends = [*starts[1:], len(lines)]
    return [(start, lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def _parse_chunk(source: PythonSource, start: int, lines: list[str]) -> None:
    failed: set[int] = set()
    while len(failed) < _MAX_BAD_LINES:
        try:
            body = parse_quietly("\n".join(lines))
        except _TOO_DEEP:
            return _give_up(source, start, lines, "expected Python code without deeply nested parts")
        except _BAD_LINE as error:
            if not _drop_bad_line(source, start, lines, failed, error):
                return None
        else:
            return source.body.extend(_shifted(statement, start) for statement in body)
    return _give_up(source, start, lines, "expected Python code: too many lines here do not parse, none is read")


def _give_up(source: PythonSource, start: int, lines: list[str], reason: str) -> None:
    source.bad.append((start + 1, 1, reason, sum(1 for line in lines if line.strip())))


def _shifted(statement: ast.stmt, lines: int) -> ast.stmt:
    return ast.increment_lineno(statement, lines)


def _drop_bad_line(
    source: PythonSource, start: int, lines: list[str], failed: set[int], error: SyntaxError | ValueError
) -> bool:
    """Note the line that an error is about and neutralize it; False when nothing is left to drop."""
    index, column = _blame(error, lines)
    if index < 0:
        return False
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    if index not in failed:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        source.bad.append((start + index + 1, column, f"expected Python code ({reason})", 1))
    lines[index] = "" if index in failed or not indent else f"{indent}pass"
    failed.add(index)
    return True


def _blame(error: SyntaxError | ValueError, lines: list[str]) -> tuple[int, int]:
    """The index of the last line with text at or before the error, and the column there, from 1."""
    line, offset = len(lines), 1
    if isinstance(error, SyntaxError) and error.lineno:
        line, offset = error.lineno, error.offset or 1
    else:
        line, offset = next(((n, text.index("\0") + 1) for n, text in enumerate(lines, 1) if "\0" in text), (line, 1))
    blamed = index = min(line, len(lines)) - 1
    while index >= 0 and not lines[index].strip():
        index -= 1
    return index, max(offset, 1) if index == blamed else len(lines[index]) + 1
