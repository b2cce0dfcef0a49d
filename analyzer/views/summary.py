"""The answer of a report: per graph the few numbers that matter and what is odd; of many graphs, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.facts import Fate, GraphFacts, KernelFact, Summary
from analyzer.model import ArtifactState
from analyzer.reasons.costs import Costs, Saved, costs
from analyzer.views.deviceless import choice_lines
from analyzer.views.ptx import estimate_lines
from analyzer.views.reading import attribution_lines, oddity_lines
from analyzer.views.text import byte_text, counted, cut, headed, listed, mentioned, more, plain, shortened

GRAPHS = 20
"""Lines of the table of graphs on the first screen; `--full` shows all."""

TOP = 3
"""Top offenders that the summary names."""

_ALWAYS = ("realized", "inlined", "recomputed")
"""Fates that are told even when no op met them."""


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


def fates_text(summary: Summary) -> str:
    """`2 realized, 1 inlined, 0 recomputed`, and what else there is; `not known` without IR dumps."""
    fates = (
        (summary.realized, "realized"),
        (summary.inlined, "inlined"),
        (summary.recomputed, "recomputed"),
        (summary.views, "views"),
        (summary.folded, "folded"),
        (summary.unknown, "unknown"),
    )
    if all(number is None for number, _ in fates):
        return "not known"
    shown = [(number, word) for number, word in fates if word in _ALWAYS or number != 0]
    told = ((number, word.removesuffix("s") if number == 1 else word) for number, word in shown)
    return ", ".join(f"{'?' if number is None else f'{number:,}'} {word}" for number, word in told)


def memory_text(facts: GraphFacts) -> str:
    """`4.0 kB allocated, 4.0 kB read, 4.0 kB written`, and how many buffers were fused away."""
    summary = facts.summary
    moved = (summary.allocated_bytes, summary.bytes_read, summary.bytes_written)
    if all(number is None for number in moved):
        return "not known: sizes are symbolic" if _symbolic(facts) else "not known"
    told = [f"{byte_text(number)} {word}" for number, word in zip(moved, ("allocated", "read", "written"), strict=True)]
    away = [f"{counted(summary.removed_buffers, 'buffer')} fused away"] if summary.removed_buffers else []
    return ", ".join(told + away)


def _symbolic(facts: GraphFacts) -> bool:
    sizes = (fact.layout.size for fact in facts.buffers if fact.layout is not None and fact.layout.size is not None)
    return any(isinstance(extent, str) for size in sizes for extent in size)


def numbers(facts: GraphFacts) -> Iterator[tuple[str, str]]:
    """The few that matter, each below its heading; what there is nothing to say about is left out."""
    found = costs(facts)
    told = (
        ("Lowering", fates_text(facts.summary)),
        ("Memory", memory_text(facts)),
        ("Moved most", top_kernels(facts)),
        ("Recomputed", recomputed_text(facts, found)),
        ("Saved by fusion", saved_text(found)),
    )
    return ((head, text) for head, text in told if text)


def head_lines(facts: GraphFacts, full: bool) -> Iterator[RenderableType]:
    """The first screen of one graph below its name: numbers, then what is odd."""
    yield Text(chain(facts.summary), style="bold")
    for head, text in numbers(facts):
        yield headed(f"{head}: ", text)
    yield from attribution_lines(facts, full)
    yield from choice_lines(facts.graph.deviceless, full)
    yield from estimate_lines(facts.graph.ptx, full)
    yield from oddity_lines(facts, full)


def largest_first(kernels: Sequence[KernelFact]) -> list[KernelFact]:
    """By bytes moved; those of unknown size last."""
    return sorted(kernels, key=lambda kernel: -1 if (size := kernel.bytes_moved) is None else size, reverse=True)


def top_kernels(facts: GraphFacts) -> str:
    """The kernels that move most, with their share; nothing to say of a single one."""
    sizes = [(kernel.name, kernel.bytes_moved) for kernel in largest_first(facts.kernels)]
    known = [(name, size) for name, size in sizes if size]
    total = sum(size for _, size in known)
    if len(sizes) < 2 or not known:
        return ""
    whole = len(known) == len(sizes)
    told = [
        f"{plain(shortened(name, 32))} {byte_text(size)}" + (f" ({100 * size / total:.0f} %)" if whole else "")
        for name, size in known[:TOP]
    ]
    return ", ".join(told)


def recomputed_text(facts: GraphFacts, found: Costs) -> str:
    """`add_2 in 9 places, mul in 2 places … 4 more`: those that cost most first, those of unknown size last."""
    rank = {one.node: at for at, one in enumerate(found.recomputed)}
    again = [fact for fact in facts.nodes if fact.recomputed]
    again.sort(key=lambda fact: rank.get(fact.name, len(rank)))
    return listed([f"{fact.name} in {len(fact.places)} places" for fact in again], most=TOP)


def saved_text(found: Costs) -> str:
    """How much fusion saved, and the group that saved most."""
    if not found.saved:
        return ""
    total = sum(one.bytes for one in found.saved)
    return f"{byte_text(total)} in {counted(len(found.saved), 'group')}, most in {_group_text(found.saved[0])}"


def _group_text(found: Saved) -> str:
    return f"{plain(shortened(found.group, 32))} ({byte_text(found.together_bytes)} not {byte_text(found.apart_bytes)})"


# ---------------------------------------------------------------------------------------------------- several graphs


def graphs_table(graphs: Sequence[GraphFacts], full: bool) -> RenderableType:
    """One line per graph: how far it was fused, what it moves, and what to look at."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    table.add_column("graph", no_wrap=True)
    for heading in ("ops", "groups", "calls", "moved"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("to look at", overflow="fold")
    shown, left = cut(graphs, GRAPHS, full)
    for facts in shown:
        table.add_row(*(Text(cell) for cell in _cells(facts, full)))
    return Group(table, *more(left, "graph"))


def _cells(facts: GraphFacts, full: bool) -> Iterator[str]:
    summary = facts.summary
    yield plain(facts.graph.label if full else shortened(facts.graph.label, 36))
    for number in (summary.fx_nodes, summary.groups, summary.kernel_calls):
        yield "?" if number is None else f"{number:,}"
    yield byte_text(summary.bytes_moved)
    yield mentioned(_remarks(facts)) or "-"


def _remarks(facts: GraphFacts) -> Iterator[str]:
    """What is odd about a graph, in a word each."""
    states = [artifact.state for artifact in facts.graph.artifacts]
    unread = sum(state not in (ArtifactState.PARSED, ArtifactState.MISSING) for state in states)
    unknown = sum(fact.fate == Fate.UNKNOWN for fact in facts.nodes)
    counts = (
        (facts.summary.recomputed, "op", "recomputed"),
        (unknown, "op", "unknown"),
        (len(facts.conflicts), "conflict", "of sources"),
        (states.count(ArtifactState.MISSING), "file", "missing"),
        (unread, "file", "not read whole"),
    )
    yield from (f"{counted(number, noun)} {word}" for number, noun, word in counts if number)


def graph_head(facts: GraphFacts) -> Text:
    """Name, kind and device."""
    kind = facts.graph.kind if facts.graph.kind != "unknown" else "kind unknown"
    return headed(plain(facts.graph.label), f"  {mentioned([plain(kind), device_text(facts)])}")


def device_text(facts: GraphFacts) -> str:
    """The devices of the buffers."""
    devices = {fact.layout.device for fact in facts.buffers if fact.layout is not None and fact.layout.device}
    return plain(", ".join(sorted(devices))) if devices else "device unknown"
