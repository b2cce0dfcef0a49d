"""The view of an audit: the verdict, why, the ladder with its evidence, before and after, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.verdict import AuditResult, Citation, GraphAudit, Verdict
from analyzer.views.before_after import before_after
from analyzer.views.next_step import next_step
from analyzer.views.text import cut, headed, indented, listed, more, plain

GRAPHS = 5
CITATIONS = 3
"""Graphs per audit and citations per rung on the first screens; `--full` shows all."""

_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z])")

_STYLES = {Verdict.EFFECTIVE: "bold green", Verdict.PARTIAL: "bold yellow", Verdict.NO_OPPORTUNITY: "bold yellow"}
MEANING = {
    Verdict.EFFECTIVE: "the ablation did what its name says",
    Verdict.PARTIAL: "the ablation acted, but not all the way",
    Verdict.INERT: "it was in force and changed nothing at its layer",
    Verdict.NO_OPPORTUNITY: "the baseline left it nothing to switch off",
    Verdict.UNEXPECTED: "something else changed instead",
    Verdict.UNAPPLIED: "the setting was not in force when this was compiled",
    Verdict.CONFOUNDED: "the arms differ in more than the ablation",
    Verdict.UNDECIDED: "the artifacts do not tell",
}
_HELD = {True: ("✓", "green", "yes"), False: ("✗", "red", "no"), None: ("–", "dim", "not recorded")}


@dataclass(frozen=True, slots=True)
class AuditView:
    """An audit's verdict and its reasons. `full` leaves nothing out."""

    result: AuditResult
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        result = self.result
        yield headed(f"Audit of {plain(result.ablation)}: ", _verdict(result))
        yield Text(f"  {MEANING[result.verdict]}")
        for note in result.notes:
            yield Text(f"  Note: {plain(note)}", style="yellow", overflow="fold")
        shown, left = cut(result.graphs, GRAPHS, self.full)
        for graph in shown:
            yield Text("")
            yield from _graph_lines(graph, self.full)
        yield from more(left, "graph")
        step = next_step(result)
        if step is not None:
            yield Text("")
            yield headed("next: ", plain(step), "bold cyan")


def _verdict(result: AuditResult | GraphAudit) -> Text:
    masked = f", masked by {plain(result.masked_by)}" if result.masked_by else ""
    return Text(f"{result.verdict}{masked}", style=_STYLES.get(result.verdict, "bold red"))


def _graph_lines(graph: GraphAudit, full: bool) -> Iterator[RenderableType]:
    yield headed(f"{plain(graph.name)}: ", _verdict(graph))
    yield indented(_why(graph.why))
    if full and (graph.left_before or graph.left_after):
        yield indented(Text(_left_text(graph), overflow="fold"))
    if graph.rungs:
        yield Text("")
        yield from _ladder(graph, full)
    if graph.before is not None or graph.after is not None:
        yield Text("")
        yield indented(before_after(graph.before, graph.after))


def _why(text: str) -> Table:
    """The reasons, one sentence a line."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    for number, line in enumerate(sentences(text)):
        table.add_row(Text("" if number else "Why:", style="bold"), Text(plain(line)))
    return table


def sentences(text: str) -> list[str]:
    """The sentences of a text that is made of whole ones."""
    return _SENTENCE_END.split(text)


def _left_text(graph: GraphAudit) -> str:
    before, after = len(graph.left_before), len(graph.left_after)
    names = f" ({listed(graph.left_after, full=True)})" if graph.left_after else ""
    return f"Left to ablate ({plain(graph.counted)}): {before:,} before, {after:,} after{names}"


def _ladder(graph: GraphAudit, full: bool) -> Iterator[RenderableType]:
    for rung in graph.rungs:
        mark, style, held = _HELD[rung.held]
        yield indented(headed(f"{mark} ", f"{rung.rung}: {held}", style))
        cited, left = cut(rung.evidence, CITATIONS, full)
        for line in (*(_citation(citation, graph.name, full) for citation in cited), *more(left, "citation")):
            yield indented(indented(indented(line)))


def _citation(citation: Citation, graph: str, full: bool) -> Text:
    line = f":{citation.line}" if citation.line is not None else ""
    file = citation.file if full else tail(citation.file, graph)
    place = f"{plain(file)}{line}  " if file else ""
    return headed(place, plain(citation.text), "cyan")


def tail(file: str, graph: str) -> str:
    """The name alone for a file in the graph's own folder, else with the folder that it is in."""
    *folders, name = file.split("/")
    if folders[-1:] == [graph]:
        return name
    return file if len(folders) < 2 else f"…/{folders[-1]}/{name}"
