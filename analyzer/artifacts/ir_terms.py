"""Python values in an artifact's text, as the rules `term`, `group`, `sequence`, `keyword` and `pair` find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from lark import Token
from lark.visitors import Transformer_NonRecursive

_Result = TypeVar("_Result")
_DEEPEST = 100


class NodeError(Exception):
    """Text that fits the grammar and still makes no sense; `position` is its offset in the node's text."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Term:
    """A value: its text, where it starts, and the items of its last bracket when it ends in one.

    `head` is what stands before that bracket: the callee of a call, "" for a list, tuple or dictionary. Text in
    quotes is `quoted`, and `text` is then without them.
    """

    text: str
    start: int
    head: str = ""
    items: tuple[Item, ...] | None = None
    quoted: bool = False
    depth: int = 0

    def values(self) -> tuple[Term, ...]:
        """The positional items."""
        return tuple(item.value for item in self.items or () if item.key is None)

    def keywords(self) -> dict[str, Term]:
        """The items with a name: of a call, or of a dictionary."""
        return {item.key: item.value for item in self.items or () if item.key is not None}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a bracket: `value`, `key=value` or `key: value`."""

    value: Term
    key: str | None = None


class Bracket(NamedTuple):
    """A bracket and what it holds, by offsets in the text."""

    start: int
    end: int
    items: tuple[Item, ...]
    depth: int = 1


class TermBuilder(Transformer_NonRecursive[Token, _Result]):
    """Builds terms; expressions keep their text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def term(self, children: list[Token | Bracket]) -> Term:
        """Atoms, strings and brackets in a row: `FixedLayout(...)`, `2*(p0//8)`, `'buf0'`."""
        first, last = children[0], children[-1]
        if len(children) == 1 and isinstance(first, Token):
            quoted = first.type == "STRING"
            return Term(first[1:-1] if quoted else str(first), start_of(first), quoted=quoted)
        text = self._slice(_start(first), _end(last))
        depth = max((child.depth for child in children if isinstance(child, Bracket)), default=0)
        if isinstance(last, Token):
            return Term(text, _start(first), depth=depth)
        return Term(text, _start(first), self._slice(_start(first), last.start), last.items, depth=depth)

    def group(self, children: list[Token | Item | Term]) -> Bracket:
        """A bracket and its items."""
        opening, closing = children[0], children[-1]
        assert isinstance(opening, Token)
        assert isinstance(closing, Token)
        parts = (child for child in children if not isinstance(child, Token))
        items = tuple(part if isinstance(part, Item) else Item(part) for part in parts)
        depth = 1 + max((item.value.depth for item in items), default=0)
        if depth > _DEEPEST:
            raise NodeError(_start(opening), f"expected brackets that nest at most {_DEEPEST} deep")
        return Bracket(_start(opening), _end(closing), items, depth)

    def sequence(self, children: list[Token | Item | Term]) -> Term:
        """The list of an attribute."""
        return self.term([self.group(children)])

    def keyword(self, children: list[Any]) -> Item:
        """`size=[2, 3]`."""
        return Item(children[1], str(children[0]))

    def pair(self, children: list[Term]) -> Item:
        """`c0: 32`."""
        return Item(children[1], children[0].text)

    def _slice(self, start: int, end: int) -> str:
        text = self._text[start:end]
        return " ".join(text.split()) if "\n" in text else text


def start_of(token: Token) -> int:
    """The token's offset in the text."""
    return token.start_pos or 0


def _start(part: Token | Bracket) -> int:
    return part.start if isinstance(part, Bracket) else start_of(part)


def _end(part: Token | Bracket) -> int:
    return part.end if isinstance(part, Bracket) else part.end_pos or 0
