"""The report on a run: per graph the answer, the numbers that matter, every op, every kernel, and what is odd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from analyzer.facts import GraphFacts, Summary
from analyzer.model import CacheState, Run
from analyzer.views.deviceless import banner_lines, choice_lines
from analyzer.views.kernels import kernel_tree
from analyzer.views.nodes import NodeTable
from analyzer.views.reading import attribution_lines, reading_lines
from analyzer.views.settings import told_settings
from analyzer.views.text import byte_text, counted, headed, indented, mentioned, plain

COLD_CAPTURE = "inductor-audit capture --out DIR SCRIPT runs it again with every cache off"


@dataclass(frozen=True, slots=True)
class ReportView:
    """A run and the facts about its graphs. `full` leaves nothing out."""

    run: Run
    graphs: Sequence[GraphFacts]
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from _run_lines(self.run, self.graphs)
        if not self.graphs:
            yield Text("No compiled graph was found here.", style="bold yellow")
            yield headed("next: ", COLD_CAPTURE, "bold cyan")
        for facts in self.graphs:
            yield Text("")
            yield from _graph_lines(facts, self.full)


def _run_lines(run: Run, graphs: Sequence[GraphFacts]) -> Iterator[RenderableType]:
    yield Text(f"Run {plain(run.path)}", style="bold", overflow="fold")
    yield indented(Text(run_words(run, graphs)))
    yield from (indented(line) for line in banner_lines(graphs))
    ablations = run.manifest.ablations if run.manifest is not None else ()
    for head, told in (("Settings", told_settings(graphs)), ("Ablated", ablations)):
        if told:
            yield indented(headed(f"{head}: ", plain(", ".join(told))))
    for note in run.notes:
        yield indented(headed("Note: ", plain(note), "bold yellow"))
    if graphs and run.cache_state in (CacheState.WARM, CacheState.MIXED):
        missing = "graphs that came from a cache left no folder and are missing below"
        yield indented(headed("Note: ", f"{missing}; {COLD_CAPTURE}", "bold yellow"))


def run_words(run: Run, graphs: Sequence[GraphFacts]) -> str:
    """`torch 2.13.0+cpu · cold caches · captured by inductor-audit · 1 graph`."""
    torch = f"torch {plain(run.torch_version)}" if run.torch_version else "torch version unknown"
    captured = "captured by inductor-audit" if run.captured else "not captured by inductor-audit"
    cache = f"{run.cache_state} caches" if run.cache_state != CacheState.UNKNOWN else "cache state unknown"
    return mentioned([torch, cache, captured, counted(len(graphs), "graph")])


def _graph_lines(facts: GraphFacts, full: bool) -> Iterator[RenderableType]:
    graph = facts.graph
    kind = graph.kind if graph.kind != "unknown" else "kind unknown"
    yield headed(plain(graph.label), f"  {mentioned([plain(kind), device_text(facts)])}")
    yield Text(f"  {chain(facts.summary)}", style="bold")
    assumed = choice_lines(graph.deviceless, full)
    for line in (*_number_lines(facts.summary), *attribution_lines(facts, full), *assumed):
        yield indented(line)
    for part in (NodeTable(facts, full), kernel_tree(facts, full), Group(*reading_lines(facts, full))):
        yield Text("")
        yield indented(part)


def chain(summary: Summary) -> str:
    """The layers in one line: `2 ops → 1 scheduler node → 1 group → 1 kernel call`."""
    return " → ".join(
        (
            counted(summary.fx_nodes, "op"),
            counted(summary.scheduler_nodes, "scheduler node"),
            counted(summary.groups, "group"),
            counted(summary.kernel_calls, "kernel call"),
        )
    )


def _number_lines(summary: Summary) -> Iterator[Text]:
    fates = (
        (summary.realized, "realized"),
        (summary.inlined, "inlined"),
        (summary.recomputed, "recomputed"),
        (summary.views, "views"),
        (summary.folded, "folded"),
        (summary.unknown, "unknown"),
    )
    told = [f"{'?' if number is None else f'{number:,}'} {word}" for number, word in fates]
    yield headed("Lowering: ", ", ".join(told))
    memory = [
        f"{byte_text(summary.allocated_bytes)} allocated",
        f"{byte_text(summary.bytes_read)} read",
        f"{byte_text(summary.bytes_written)} written",
        f"{counted(summary.removed_buffers, 'buffer')} fused away",
    ]
    yield headed("Memory: ", ", ".join(memory))


def device_text(facts: GraphFacts) -> str:
    """The devices of the buffers."""
    devices = {fact.layout.device for fact in facts.buffers if fact.layout is not None and fact.layout.device}
    return plain(", ".join(sorted(devices))) if devices else "device unknown"
