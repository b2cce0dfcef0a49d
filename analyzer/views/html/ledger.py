"""The tables below a report page's columns: what moves most and is computed again, and of each op its fate and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.facts import Fate, GraphFacts
from analyzer.reasons.apart import Apart
from analyzer.reasons.costs import Costs, costs
from analyzer.reasons.ledger import Entry, Ledger, ledger
from analyzer.views.html.layers import Layer, LayeredGraph, row_numbers
from analyzer.views.summary import largest_first
from analyzer.views.text import byte_text, listed, shortened

ROWS = 1000
"""Rows of a table; a page of more is no page, and `report --why --full` has them all."""

OPEN = 40
"""A longer table is folded at first."""

NAME = 60


@dataclass(frozen=True, slots=True)
class Row:
    """A name, the number of the row of the columns that it leads to, and what is told of it."""

    name: str
    number: int | None
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table under a heading; `left` rows are not shown. `note` says how to read it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    total: int
    note: str = ""
    figures: bool = False

    @property
    def left(self) -> int:
        """Rows that are not shown."""
        return self.total - len(self.rows)

    @property
    def opened(self) -> bool:
        """Whether it is short enough to be shown at once."""
        return len(self.rows) <= OPEN


@dataclass(frozen=True)
class Tables:
    """Makes the tables of one graph; `rows` numbers what stands in its columns."""

    facts: GraphFacts
    rows: LayeredGraph
    _numbers: dict[Layer, Mapping[str, int]] = field(default_factory=dict)

    def costs(self) -> list[Table]:
        """What moves most, what is computed again, what fusion saves; those with nothing to show are left out."""
        found = costs(self.facts)
        return [table for table in (self._moved(), self._again(found), self._saved(found)) if table.rows]

    def reasons(self) -> list[Table]:
        """Every op by what became of it, recomputed ones first, then the groups that stayed apart."""
        written = ledger(self.facts)
        return [table for table in (*self._entries(written), self._apart(written.apart)) if table.rows]

    def _row(self, layer: Layer, name: str, *cells: str) -> Row:
        numbers = self._numbers.setdefault(layer, row_numbers(self.rows, layer))
        return Row(shortened(name, NAME), numbers.get(name), cells)

    # ----------------------------------------------------------------------------------------------------------- costs

    def _moved(self) -> Table:
        kernels = largest_first(self.facts.kernels)
        sizes = [kernel.bytes_moved for kernel in kernels]
        total = sum(size or 0 for size in sizes)
        rows = [
            self._row(
                Layer.KERNEL,
                kernel.name,
                f"{kernel.calls:,}",
                byte_text(kernel.bytes_read),
                byte_text(kernel.bytes_written),
                f"{100 * size / total:.1f} %" if size is not None and total and None not in sizes else "?",
            )
            for kernel, size in zip(kernels, sizes, strict=True)
        ]
        note = "Bytes of the buffers that each kernel reads and writes, each once per call."
        return _table("Moved most", ("kernel", "calls", "read", "written", "share"), rows, note, figures=True)

    def _again(self, found: Costs) -> Table:
        rows = [
            self._row(
                Layer.FX_NODE,
                one.node,
                f"{one.most:,}" if one.least == one.most else f"{one.least:,} to {one.most:,}",
                byte_text(one.realizing_bytes) if one.realizing_bytes is not None else "-",
                listed(one.places, most=8),
            )
            for one in found.recomputed
        ]
        columns = ("op", "elements again", "a buffer would move", "computed in")
        note = "Because it was inlined into several loops. Loops of one group may share the work: hence a range."
        return _table("Computed again", columns, rows, note, figures=True)

    def _saved(self, found: Costs) -> Table:
        rows = [
            self._row(
                Layer.GROUP,
                one.group,
                byte_text(one.bytes),
                byte_text(one.apart_bytes),
                byte_text(one.together_bytes),
                listed(one.kept_inside, most=8) or "-",
            )
            for one in found.saved
        ]
        columns = ("group", "saved", "apart", "fused", "used up inside")
        return _table("Saved by fusion", columns, rows, "Bytes that its members would move on their own.", figures=True)

    # --------------------------------------------------------------------------------------------------------- reasons

    def _entries(self, written: Ledger) -> Iterator[Table]:
        facts = {fact.name: fact for fact in self.facts.nodes}
        found: dict[str, list[Entry]] = {title: [] for title in ("Recomputed", "Inlined", "Realized", "Others")}
        for entry in written.entries:
            fact = facts[entry.node]
            title = "Recomputed" if fact.recomputed else _TITLES.get(fact.fate, "Others")
            found[title].append(entry)
        for title, entries in found.items():
            rows = [self._row(Layer.FX_NODE, entry.node, entry.told, str(entry.why or "")) for entry in entries]
            yield _table(title, ("op", "what became of it", "why"), rows)

    def _apart(self, pairs: Sequence[Apart]) -> Table:
        rows = [
            self._row(
                Layer.GROUP,
                pair.first,
                shortened(pair.second, NAME),
                listed(pair.shared),
                " · ".join(str(why) for why in (pair.why, pair.likely) if why is not None),
            )
            for pair in pairs
        ]
        return _table("Groups that stayed apart", ("group", "and", "both touch", "why"), rows)


_TITLES = {Fate.INLINED: "Inlined", Fate.REALIZED: "Realized"}


def _table(title: str, columns: Sequence[str], rows: Sequence[Row], note: str = "", figures: bool = False) -> Table:
    return Table(title, columns, rows[:ROWS], len(rows), note, figures)
