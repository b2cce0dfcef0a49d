"""The table of post-grad FX nodes: what became of every op, and in which kernel it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.facts import Fate, GraphFacts, NodeFact
from analyzer.model import SourceSite
from analyzer.views.fates import fate_text
from analyzer.views.links import source_link
from analyzer.views.text import SHORT, counted, cut, listed, more, plain, shortened

ROWS = 20
"""Rows of the first screens; `--full` shows all."""

WIDE = 100
"""Columns from which on every op's target fits beside its name."""

SHORT_FILE = 12
"""A longer file name, when it is the only one, is told once below the table and not in every row."""

_NO_OPS = (Fate.INPUT, Fate.CONSTANT)
_STYLES = {Fate.REALIZED: "green", Fate.INLINED: "cyan", Fate.UNKNOWN: "yellow"}


@dataclass(frozen=True, slots=True)
class NodeTable:
    """One row per op that computes something; inputs, constants and views are only counted, unless all is asked for.

    Narrow terminals go without the column of targets, runs that record no line without that of lines. `largest` puts
    the ops with the largest buffers first.
    """

    facts: GraphFacts
    full: bool = False
    largest: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if not self.facts.nodes:
            yield Text("No FX graph was read: the fate of single ops is not known", style="yellow")
            return
        left_out = _NO_OPS if self.full else (*_NO_OPS, Fate.VIEW)
        ops = [fact for fact in self.facts.nodes if fact.fate not in left_out and fact.node.op != "output"]
        if self.largest:
            ops.sort(key=self._stored_bytes, reverse=True)
        shown, left = cut(ops, ROWS, self.full)
        if ops:
            yield self._table(shown, options.max_width)
        yield from more(left, "row")
        yield from _below(_only_file(ops), self.facts, left_out)

    def _stored_bytes(self, fact: NodeFact) -> int:
        buffer = self.facts.buffer(fact.buffer) if fact.fate == Fate.REALIZED and fact.buffer is not None else None
        return (buffer.bytes if buffer is not None else None) or 0

    def _table(self, ops: Sequence[NodeFact], width: int) -> Table:
        file, lines = _only_file(ops), any(fact.source is not None for fact in ops)
        wide = width >= WIDE
        limit = min(SHORT, width // 5 if wide else width // 4 + 2)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
        source = ("line" if file else "source",) if lines else ()
        for heading in ("FX node", *(("op",) if wide else ()), *source, "fate", "kernel"):
            # A shortened name ends in what tells it from others: the fates wrap before a name is broken.
            shortened_name = heading in ("FX node", "kernel") and not self.full
            table.add_column(heading, overflow="fold", no_wrap=shortened_name)
        for fact in ops:
            table.add_row(*self._row(fact, wide, limit, file, lines))
        return table

    def _row(self, fact: NodeFact, wide: bool, limit: int, file: str | None, lines: bool) -> Iterator[Text]:
        buffer = self.facts.buffer(fact.buffer) if fact.buffer is not None else None
        yield Text(plain(fact.name if self.full else shortened(fact.name, limit)))
        if wide:
            yield Text(plain(fact.node.target if self.full else shortened(fact.node.target, limit)), style="dim")
        if lines:
            yield source_link(source_text(fact.source, file), fact.source)
        yield Text(fate_text(fact, buffer, self.full), style=_STYLES.get(fact.fate, ""))
        kernels = listed(fact.kernels, most=2, full=self.full, limit=limit) or "-"
        yield Text(kernels.replace(", ", ",\n").replace(" …", "\n…"))


def source_text(site: SourceSite | None, only_file: str | None = None) -> str:
    """`model.py:17`, the line alone when its file is told elsewhere, a dash when the artifacts name no line."""
    if site is None:
        return "-"
    return str(site.line) if only_file else plain(f"{shortened(_base(site))}:{site.line}")


def _base(site: SourceSite) -> str:
    return PurePosixPath(site.file).name


def _only_file(ops: Sequence[NodeFact]) -> str | None:
    """The long name of the one file that all ops come from."""
    sites = [fact.source for fact in ops if fact.source is not None]
    if len({site.file for site in sites}) != 1 or len(_base(sites[0])) <= SHORT_FILE:
        return None
    return _base(sites[0])


def _below(file: str | None, facts: GraphFacts, left_out: Sequence[Fate]) -> Iterator[Text]:
    """What the table leaves out."""
    counts = [(sum(fact.fate == fate for fact in facts.nodes), str(fate)) for fate in left_out]
    told = [counted(number, noun) for number, noun in counts if number]
    lines = [f"lines of {plain(shortened(file))}"] if file else []
    if told or lines:
        yield Text(f"({'; '.join([*lines, *([', '.join(told) + ' not listed'] if told else [])])})", style="dim")
