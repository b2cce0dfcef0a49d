"""The view of a check: how many contracts were kept, then every one that was not, with the reason and the place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.contracts.records import ClauseResult, ContractReport, ContractResult, Judgement, Outcome
from analyzer.model import Location
from analyzer.views.json import SCHEMA_VERSION
from analyzer.views.text import cut, headed, indented, more, plain

REASONS = 5
"""Reasons per promise on the first screens; `--full` shows all."""

_WORDS = {Outcome.KEPT: "KEPT", Outcome.BROKEN: "BROKEN", Outcome.UNDECIDED: "COULD NOT DECIDE"}
_STYLES = {Outcome.KEPT: "bold green", Outcome.BROKEN: "bold red", Outcome.UNDECIDED: "bold yellow"}


@dataclass(frozen=True, slots=True)
class CheckView:
    """All contracts of a file. `full` names the kept ones too, and leaves no reason out."""

    report: ContractReport
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield Text(_counts(self.report), style=_STYLES[self.report.outcome])
        for result in self.report.results:
            if result.outcome != Outcome.KEPT:
                yield Text("")
                yield from _contract_lines(result, self.full)
            elif self.full:
                yield headed(f"{_WORDS[result.outcome]} ", plain(result.contract.name), _STYLES[result.outcome])


def _counts(report: ContractReport) -> str:
    parts = [f"{report.count(Outcome.KEPT)} kept", f"{report.count(Outcome.BROKEN)} broken"]
    undecided = report.count(Outcome.UNDECIDED)
    return ", ".join([*parts, f"{undecided} could not be decided"] if undecided else parts)


def _contract_lines(result: ContractResult, full: bool) -> Iterator[RenderableType]:
    yield headed(f"{_WORDS[result.outcome]} ", plain(result.contract.name), _STYLES[result.outcome])
    yield indented(Text(plain(_place(result.contract.location)), style="cyan", overflow="fold"))
    for clause in result.clauses:
        if clause.outcome != Outcome.KEPT:
            yield from (indented(line) for line in _clause_lines(clause, full))


def _clause_lines(clause: ClauseResult, full: bool) -> Iterator[RenderableType]:
    yield Text(f"{clause.clause.kind}: {_WORDS[clause.outcome].lower()}", style="bold")
    shown, left = cut(clause.telling, REASONS, full)
    for judgement in shown:
        yield indented(_reason(judgement))
    yield from more(left, "reason")


def _reason(judgement: Judgement) -> Text:
    graph = f"{judgement.graph}: " if judgement.graph else ""
    where = f"  ({_place(judgement.place)})" if judgement.place else ""
    return Text(plain(f"{graph}{judgement.reason}{where}"), overflow="fold")


def _place(place: Location) -> str:
    return str(place) if place.column > 1 else f"{place.file}:{place.line}"


# ------------------------------------------------------------------------------------------------------------ GitHub


def github_lines(report: ContractReport) -> Iterator[str]:
    """A workflow command of GitHub Actions per reason, then the counts; commands show as annotations in the diff."""
    for result in report.results:
        for clause in result.clauses:
            if result.outcome == clause.outcome != Outcome.KEPT:
                yield from (_annotation(result, clause, judgement) for judgement in clause.telling)
    yield _counts(report)


def _annotation(result: ContractResult, clause: ClauseResult, judgement: Judgement) -> str:
    """At the line of the program where that is in this checkout, else at the contract."""
    level = "error" if result.outcome == Outcome.BROKEN else "warning"
    inside = _in_checkout(judgement.place) if judgement.place else None
    place = inside or _in_checkout(result.contract.location) or result.contract.location
    title = f"{_WORDS[result.outcome]}: {result.contract.name}"
    graph = f"{judgement.graph}: " if judgement.graph else ""
    properties = f"file={_property(place.file)},line={place.line},col={place.column},title={_property(title)}"
    return f"::{level} {properties}::{_message(f'{clause.clause.kind}: {graph}{judgement.reason}')}"


def _in_checkout(place: Location) -> Location | None:
    """The place with its file relative to the working folder, None for a file that is not below it."""
    here = Path.cwd()
    path = Path(os.path.normpath(here / place.file))
    if not path.is_relative_to(here) or not path.is_file():
        return None
    return Location(path.relative_to(here).as_posix(), place.line, place.column)


def _message(text: str) -> str:
    """As actions/toolkit has it (core/src/command.ts: `escapeData`); other control characters are made visible."""
    return plain(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    """`escapeProperty` there: a colon or comma would end the property."""
    return _message(text).replace(":", "%3A").replace(",", "%2C")


# -------------------------------------------------------------------------------------------------------------- JSON


def check_document(report: ContractReport) -> dict[str, Any]:
    """The document of `check --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": str(report.outcome),
        "kept": report.count(Outcome.KEPT),
        "broken": report.count(Outcome.BROKEN),
        "undecided": report.count(Outcome.UNDECIDED),
        "contracts": [_contract(result) for result in report.results],
    }


def _contract(result: ContractResult) -> dict[str, Any]:
    place = result.contract.location
    return {
        "name": result.contract.name,
        "graph": result.contract.graph,
        "file": place.file,
        "line": place.line,
        "outcome": str(result.outcome),
        "clauses": [
            {
                "kind": clause.clause.kind,
                "outcome": str(clause.outcome),
                "judgements": [_judgement(judgement) for judgement in clause.judgements],
            }
            for clause in result.clauses
        ],
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    place = judgement.place
    return {
        "outcome": str(judgement.outcome),
        "graph": judgement.graph,
        "reason": judgement.reason,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
