"""What is wrong with a node's text, in words, from what lark says."""

from __future__ import annotations

from collections.abc import Iterable

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from analyzer.artifacts.ir_terms import NodeError

_SHORT = 40
_TERMINALS = {
    "OWNER": "an attribute (NAME.attribute = ...)",
    "NAME": "a name",
    "CLASS": "a class name",
    "VERBATIM": "a value",
    "UNKNOWN": "'='",
    "BUFFER": "a buffer (NAME: CLASS)",
    "LAYOUT_OF": "a layout (NAME_layout = ...)",
    "LAYOUT_CLASS": "a layout",
    "BODY_NAME": "NAME_loop_body",
    "INDEX_NAME": "an index (indexN = ...)",
    "RESULT": "a statement (NAME = ops.OP(...))",
    "OPS": "ops.OP(...)",
    "MODULE": "self.NAME(...)",
    "GETITEM": "NAME[N]",
    "STRING": "a quoted text",
    "ATOM": "a value",
    "KEY": "a keyword",
    "ATTRIBUTE": "an attribute's name",
    "_CLASS": "a loop body (class NAME_loop_body:)",
    "_DEF": "'def'",
    "_RETURN": "'return'",
    "$END": "the end of the node",
}
_RARE = {"TRITON_CODE", "UNFINALIZED", "SNODES", "_PASS"}


class BadNodeError(Exception):
    """A node that cannot be read; line and column count from 1 in its own text."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message


def bad_sense(text: str, error: NodeError) -> BadNodeError:
    """Text that fits the grammar and makes no sense."""
    before = text[: error.position]
    return BadNodeError(before.count("\n") + 1, error.position - before.rfind("\n"), str(error))


def bad_syntax(text: str, error: UnexpectedInput, grammar: Lark) -> BadNodeError:
    """Text that does not fit the grammar."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        found = f"found '{_short(error.token)}'"
        return BadNodeError(error.line, error.column, _message(grammar, error.expected, found))
    if isinstance(error, UnexpectedCharacters):
        found = f"found '{_short(text[error.pos_in_stream :].partition(chr(10))[0])}'"
        return BadNodeError(error.line, error.column, _message(grammar, error.allowed, found))
    last_line = text[text.rfind("\n") + 1 :]
    message = _message(grammar, getattr(error, "expected", ()), "found the end of the node")
    return BadNodeError(text.count("\n") + 1, len(last_line) + 1, message)


def _message(grammar: Lark, terminals: Iterable[str] | None, found: str) -> str:
    wanted = sorted({_in_words(grammar, name) for name in terminals or () if name not in _RARE})
    return f"expected {' or '.join(wanted) or 'something else'}, {found}"


def _in_words(grammar: Lark, terminal: str) -> str:
    if terminal in _TERMINALS:
        return _TERMINALS[terminal]
    pattern = grammar.get_terminal(terminal).pattern
    return f"'{pattern.value}'" if isinstance(pattern, PatternStr) else terminal.lower()


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
