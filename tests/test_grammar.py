"""The tables beside the grammars are those of the grammars; `python -m tests.test_grammar` makes them anew."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from analyzer.artifacts import grammar
from analyzer.artifacts.ir_units import RULES

Start = str | tuple[str, ...]

GRAMMARS: tuple[tuple[str, Start], ...] = (("ir_dump", RULES), ("kernel_comment", "start"))
COMMENTS = "Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.cos]\nAOT ID: ['0_inference']"
MADE_BY_THIS_LARK = pytest.mark.skipif(
    not str(grammar._kept_tables("ir_dump").get("made_from")).startswith(f"lark {lark.__version__},"),
    reason="another lark made the tables, so they are not used",
)


@pytest.mark.parametrize(("name", "start"), GRAMMARS)
def test_every_grammar_has_its_tables(name: str, start: Start) -> None:
    kept = (grammar.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    made_from = grammar._stamp(name, start).partition(", ")[2]
    assert made_from in kept, "run python -m tests.test_grammar"


@MADE_BY_THIS_LARK
@pytest.mark.parametrize(("name", "start"), GRAMMARS)
def test_the_tables_are_used(name: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "build_grammar", None)
    assert grammar.load_grammar.__wrapped__(name, start)


@pytest.mark.parametrize(
    ("name", "start", "rule", "text"),
    [
        ("kernel_comment", "start", None, COMMENTS),
        ("kernel_comment", "start", None, COMMENTS + "\nSource Nodes: ["),
        ("kernel_comment", "start", None, "AOT ID: x"),
        ("ir_dump", RULES, "entry", "op0.unmet_dependencies = [MemoryDep('buf0', c0, {c0: 8}, None)]"),
        ("ir_dump", RULES, "buffer", "buf0: ComputedBuffer\nbuf0.users = [NodeUser(node=OUTPUT, can_inplace=False)]"),
        ("ir_dump", RULES, "statement", "load = ops.load('arg0_1', get_index)"),
        ("ir_dump", RULES, "statement", "load = ops.load('arg0_1', get_index"),
        ("ir_dump", RULES, "header", "op0: SchedulerNode("),
    ],
)
def test_kept_and_built_tables_read_and_refuse_alike(name: str, start: Start, rule: str | None, text: str) -> None:
    built, kept = grammar.build_grammar(name, start), grammar.load_grammar(name, start)
    assert answer(kept, text, rule) == answer(built, text, rule)


def answer(parser: Lark, text: str, rule: str | None) -> object:
    try:
        return parser.parse(text, start=rule)
    except UnexpectedInput as error:
        return type(error), error.line, error.column, sorted(getattr(error, "expected", None) or error.allowed)


@pytest.mark.parametrize("tables", ["", "{", "[]", "{}", '{"made_from":"lark 0.1, of another grammar"}'])
def test_without_fitting_tables_the_grammar_is_built(
    tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (grammar.FOLDER / "kernel_comment.lark").read_text(encoding="utf-8")
    (tmp_path / "kernel_comment.lark").write_text(text, encoding="utf-8")
    (tmp_path / "kernel_comment.json").write_text(tables, encoding="utf-8")
    monkeypatch.setattr(grammar, "FOLDER", tmp_path)
    assert grammar.load_grammar.__wrapped__("kernel_comment").parse(COMMENTS)


def refresh() -> None:
    for name, start in GRAMMARS:
        (grammar.FOLDER / f"{name}.json").write_text(grammar.tables_of(name, start), encoding="utf-8")


if __name__ == "__main__":
    refresh()
