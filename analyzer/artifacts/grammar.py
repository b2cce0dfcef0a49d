"""The lark grammars beside the package, each with its tables: building those takes longer than reading a small dump."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

FOLDER = Path(__file__).resolve().parents[2] / "grammars"


@cache
def load_grammar(name: str, start: str | tuple[str, ...] = "start") -> Lark:
    """The LALR parser of `grammars/NAME.lark` for one start rule, or for several (`parse` then takes which).

    Its tables come from `grammars/NAME.json` if this very lark made them from this very grammar, else they are built.
    """
    tables = _kept_tables(name)
    if tables.get("made_from") != _stamp(name, start):
        return build_grammar(name, start)
    return Lark.__new__(Lark)._load({"data": tables["data"], "memo": tables["memo"]})


def build_grammar(name: str, start: str | tuple[str, ...]) -> Lark:
    """The same parser from the grammar's text alone."""
    rules = start if isinstance(start, str) else list(start)
    return Lark(_text(name), parser="lalr", start=rules, maybe_placeholders=False)


def tables_of(name: str, start: str | tuple[str, ...]) -> str:
    """What `grammars/NAME.json` must hold; tests/test_grammar.py keeps it so."""
    data, memo = build_grammar(name, start).memo_serialize([TerminalDef, Rule])
    return json.dumps({"made_from": _stamp(name, start), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


def _kept_tables(name: str) -> dict[str, Any]:
    try:
        tables = json.loads((FOLDER / f"{name}.json").read_bytes(), object_pairs_hook=_with_numbers)
    except (OSError, ValueError):
        return {}
    return tables if isinstance(tables, dict) else {}


def _with_numbers(pairs: list[tuple[str, Any]]) -> dict[str | int, Any]:
    """JSON has no numbers as keys; states and memos are numbered."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs}


def _stamp(name: str, start: str | tuple[str, ...]) -> str:
    return f"lark {lark.__version__}, {sha256(f'{start} {_text(name)}'.encode()).hexdigest()}"


def _text(name: str) -> str:
    return (FOLDER / f"{name}.lark").read_text(encoding="utf-8")
