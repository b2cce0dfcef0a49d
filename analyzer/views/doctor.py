"""The view of a diagnosis: what is wrong, the one thing to do, then what else was found and what is in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.doctor.records import Diagnosis, Level, Report
from analyzer.views.json import SCHEMA_VERSION
from analyzer.views.text import counted, cut, headed, indented, mentioned, more, plain, shortened

SENTENCES = 3
"""Sentences per cause on the first screens; `--full` shows all."""

LONGEST = 200
"""Characters of a path or sentence; `--full` shows all."""

_STYLES = {Level.PROBLEM: ("✗ ", "bold red"), Level.NOTE: ("! ", "bold yellow")}


@dataclass(frozen=True, slots=True)
class DoctorView:
    """A doctor's report. `full` leaves nothing out."""

    report: Report
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        report = self.report
        subject = report.subject if self.full else shortened(report.subject, LONGEST)
        yield headed("Doctor: ", plain(subject))
        if report.facts:
            yield indented(Text(plain(mentioned(report.facts)), style="dim", overflow="fold"))
        yield _verdict(report)
        for number, diagnosis in enumerate(report.diagnoses):
            yield Text("")
            yield from _diagnosis_lines(diagnosis, self.full)
            if number:
                yield indented(headed("do: ", plain(diagnosis.remedy), "cyan"))
        if report.diagnoses:
            yield Text("")
            yield headed("next: ", plain(report.diagnoses[0].remedy), "bold cyan")


def _verdict(report: Report) -> Text:
    problems, notes = len(report.problems), len(report.diagnoses) - len(report.problems)
    if not report.diagnoses:
        return Text("Nothing is wrong that a doctor can see.", style="bold green")
    told = mentioned([counted(problems, "problem") if problems else "", counted(notes, "note") if notes else ""])
    return Text(told, style="bold red" if problems else "bold yellow")


def _diagnosis_lines(diagnosis: Diagnosis, full: bool) -> Iterator[RenderableType]:
    mark, style = _STYLES[diagnosis.level]
    yield headed(mark, Text(plain(diagnosis.cause), style="bold"), style)
    shown, left = cut(diagnosis.told, SENTENCES, full)
    for sentence in shown:
        yield indented(Text(plain(sentence if full else shortened(sentence, LONGEST)), overflow="fold"))
    for line in more(left, "such case"):
        yield indented(line)


def doctor_document(report: Report) -> dict[str, Any]:
    """The document of `doctor --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "subject": report.subject,
        "healthy": not report.problems,
        "facts": list(report.facts),
        "diagnoses": [
            {
                "cause": diagnosis.cause,
                "level": str(diagnosis.level),
                "told": list(diagnosis.told),
                "remedy": diagnosis.remedy,
            }
            for diagnosis in report.diagnoses
        ],
    }
