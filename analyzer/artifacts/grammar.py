"""The lark grammars beside the package, loaded once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark

_FOLDER = Path(__file__).resolve().parents[2] / "grammars"


@cache
def load_grammar(name: str, start: str | tuple[str, ...] = "start") -> Lark:
    """The LALR parser of `grammars/NAME.lark` for one start rule, or for several (`parse` then takes which)."""
    return Lark(
        (_FOLDER / f"{name}.lark").read_text(encoding="utf-8"),
        parser="lalr",
        start=start if isinstance(start, str) else list(start),
        maybe_placeholders=False,
    )
