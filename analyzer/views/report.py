"""The report on a run: per graph the answer and what is odd, then every op and every kernel.

The first screen has the same shape for two ops and for two thousand: details come below it, or when asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.facts import GraphFacts
from analyzer.model import CacheState, Run
from analyzer.views.deviceless import banner_lines
from analyzer.views.kernels import kernel_tree
from analyzer.views.ledger import LedgerView
from analyzer.views.nodes import NodeTable
from analyzer.views.reading import whole_line
from analyzer.views.settings import told_settings
from analyzer.views.summary import graph_head, graphs_table, head_lines
from analyzer.views.text import counted, headed, indented, mentioned, plain

COLD_CAPTURE = "inductor-audit capture --out DIR SCRIPT runs it again with every cache off"

DETAILED = 3
"""Graphs of a run that are told in detail unasked; of more, one line each."""


@dataclass(frozen=True, slots=True)
class ReportView:
    """A run and the facts about its graphs.

    `full` leaves nothing out, `why` gives the reason of every fate, `largest` puts what is largest in bytes first.
    """

    run: Run
    graphs: Sequence[GraphFacts]
    full: bool = False
    why: bool = False
    largest: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from _run_lines(self.run, self.graphs, self.full)
        if not self.graphs:
            yield Text("No compiled graph was found here.", style="bold yellow")
            yield headed("next: ", f"{self._doctor()}; {COLD_CAPTURE}", "bold cyan")
        if len(self.graphs) > 1:
            yield Text("")
            yield indented(graphs_table(self.graphs, self.full))
        if len(self.graphs) > DETAILED and not self.full:
            first = plain(self.graphs[0].graph.label)
            yield headed("next: ", f"--graph {shlex.quote(first)} tells of one graph, --full of all", "bold cyan")
            return
        for facts in self.graphs:
            yield Text("")
            yield from self._graph_lines(facts)
        if any(facts.summary.kernel_calls is None for facts in self.graphs):
            yield headed("next: ", self._doctor(), "bold cyan")

    def _doctor(self) -> str:
        return f"inductor-audit doctor {shlex.quote(plain(self.run.path))} says what is missing and why"

    def _graph_lines(self, facts: GraphFacts) -> Iterator[RenderableType]:
        yield graph_head(facts)
        for line in head_lines(facts, self.full):
            yield indented(line)
        parts: list[RenderableType] = [
            NodeTable(facts, self.full, self.largest),
            *([LedgerView(facts, self.full)] if self.why else []),
            kernel_tree(facts, self.full, self.largest),
            *whole_line(facts),
        ]
        for part in parts:
            yield Text("")
            yield indented(part)


def _run_lines(run: Run, graphs: Sequence[GraphFacts], full: bool) -> Iterator[RenderableType]:
    yield Text(f"Run {plain(run.path)}", style="bold", overflow="fold")
    yield indented(Text(run_words(run, graphs)))
    yield from (indented(line) for line in banner_lines(graphs))
    ablations = run.manifest.ablations if run.manifest is not None else ()
    for head, told in (("Settings", told_settings(graphs, full)), ("Ablated", ablations)):
        if told:
            yield indented(headed(f"{head}: ", plain(", ".join(told))))
    for note in run.notes:
        yield indented(headed("Note: ", plain(note), "bold yellow"))


def run_words(run: Run, graphs: Sequence[GraphFacts]) -> str:
    """`torch 2.13.0+cpu · cold caches · captured by inductor-audit · 1 graph`."""
    torch = f"torch {plain(run.torch_version)}" if run.torch_version else "torch version unknown"
    captured = "captured by inductor-audit" if run.captured else "not captured by inductor-audit"
    cache = f"{run.cache_state} caches" if run.cache_state != CacheState.UNKNOWN else "caches unknown"
    return mentioned([torch, cache, captured, counted(len(graphs), "graph")])
