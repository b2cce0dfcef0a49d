"""Words and numbers as views print them; the one gate through which text from artifacts reaches a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.text import Text

from analyzer.words import counted

__all__ = [
    "SHORT",
    "artifact_text",
    "byte_text",
    "counted",
    "cut",
    "headed",
    "indented",
    "listed",
    "mentioned",
    "more",
    "plain",
    "shortened",
]

_Item = TypeVar("_Item")

SHORT = 60
"""Names longer than this are shortened in the middle, unless everything was asked for."""


def plain(text: str) -> str:
    r"""Make text harmless: what would move the cursor, colour, reorder or hide is spelled out (`\x1b`, `\u202e`)."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def shortened(text: str, limit: int = SHORT) -> str:
    """The text itself, or its two ends round an ellipsis; both ends of a kernel's or a file's name matter."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def artifact_text(text: str, style: str = "", full: bool = False) -> Text:
    """Text from an artifact as a renderable: harmless, and not longer than a person wants to read."""
    return Text(plain(text if full else shortened(text)), style=style, overflow="fold")


def listed(names: Sequence[str], most: int = 3, full: bool = False, limit: int = SHORT) -> str:
    """`a, b, c … 4 more`: a list that fits on a line."""
    shown = names if full else names[:most]
    text = ", ".join(plain(name if full else shortened(name, limit)) for name in shown)
    return text if len(shown) == len(names) else f"{text} … {len(names) - len(shown)} more"


def byte_text(number: int | None) -> str:
    """Bytes in decimal units; a question mark when a size is symbolic or an artifact is missing."""
    return "?" if number is None else decimal(number)


def mentioned(parts: Iterable[str]) -> str:
    """The parts that say something, separated by a middle dot."""
    return " · ".join(part for part in parts if part)


def cut(items: Sequence[_Item], most: int, full: bool) -> tuple[Sequence[_Item], int]:
    """The items to show, and how many are left out."""
    if full or len(items) <= most:
        return items, 0
    return items[:most], len(items) - most


def more(number: int, noun: str) -> Iterator[Text]:
    """The line that says what was left out; nothing when nothing was."""
    if number:
        yield Text(f"… {counted(number, 'more ' + noun)}; --full shows all", style="dim")


def headed(head: str, rest: str | Text, style: str = "bold") -> Text:
    """A line whose first words stand out."""
    return Text.assemble((head, style), rest, overflow="fold")


def indented(part: RenderableType) -> Padding:
    """The part moved right by one step, without filling its lines up."""
    return Padding(part, (0, 0, 0, 2), expand=False)
