"""The page of a report: per graph the numbers and what is odd, the five columns, costs, reasons and the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from analyzer.facts import Evidence, GraphFacts
from analyzer.model import Run
from analyzer.views.deviceless import banner_lines, choice_lines
from analyzer.views.html.layers import TITLES, Item, Layer, LayeredGraph, item_title, layered, row_numbers
from analyzer.views.html.ledger import Table, Tables
from analyzer.views.html.page import code_text, embedded, render
from analyzer.views.html.picture import Picture, pictures
from analyzer.views.ptx import estimate_lines
from analyzer.views.reading import attribution_lines, oddity_lines, whole_line
from analyzer.views.report import run_words
from analyzer.views.settings import told_settings
from analyzer.views.summary import device_text, numbers
from analyzer.views.text import plain, shortened

NAME, NOTE = 48, 140
"""Characters of a row's name and of its note; the details have the whole."""

CODE_BUDGET = 1_500_000
"""Characters of kernel code that a page carries; the kernels beyond name their place in the artifact only."""


def report_page(run: Run, graphs: Sequence[GraphFacts]) -> str:
    """The page of `report --html` and `export --to html`."""
    return render(
        "report.html.j2",
        run=run,
        words=run_words(run, graphs),
        banner=_lines(banner_lines(graphs)),
        settings=told_settings(graphs),
        ablations=run.manifest.ablations if run.manifest is not None else (),
        graphs=list(_graphs(graphs)),
        title=lambda item: shortened(item_title(item), NAME),
        note=lambda item: shortened(item.note, NOTE),
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a graph's page; `kind` is what one of its rows is called."""

    layer: Layer
    title: str
    kind: str
    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class GraphPage:
    """All that the template shows of one graph."""

    facts: GraphFacts
    device: str
    columns: Sequence[Column]
    pictures: Sequence[Picture]
    boxes: dict[str, int]
    numbers: Sequence[tuple[str, str]]
    costs: Sequence[Table]
    reasons: Sequence[Table]
    odd: Sequence[str]
    reading: Sequence[str]
    data: Any

    @property
    def quiet(self) -> int:
        """Rows that are hidden at first."""
        return sum(item.quiet for column in self.columns for item in column.items)


def _graphs(graphs: Sequence[GraphFacts]) -> Iterator[GraphPage]:
    budget = CODE_BUDGET
    for facts in graphs:
        rows = layered(facts)
        tables = Tables(facts, rows)
        attribution = _lines(attribution_lines(facts, full=True))
        code = _codes(rows, budget)
        budget -= sum(map(len, code.values()))
        yield GraphPage(
            facts,
            device_text(facts),
            [Column(layer, *TITLES[layer], rows.column(layer)) for layer in Layer],
            pictures(facts),
            row_numbers(rows, Layer.GROUP),
            [*numbers(facts), ("Attributed", attribution[0].removeprefix("Attributed: "))],
            tables.costs(),
            tables.reasons(),
            _lines(oddity_lines(facts, full=True)),
            [
                *attribution[1:],
                *_lines(choice_lines(facts.graph.deviceless, full=True)),
                *_lines(estimate_lines(facts.graph.ptx, full=True)),
                *_lines(whole_line(facts)),
            ],
            embedded(_data(rows, code, facts.graph.path)),
        )


def _codes(rows: LayeredGraph, budget: int) -> dict[int, str]:
    """The kernels' code by row, as far as the budget goes."""
    kept: dict[int, str] = {}
    for item in rows.items:
        text = code_text(item.code.strip("\n")) if item.code else ""
        if text and len(text) <= budget:
            kept[item.number] = text
            budget -= len(text)
    return kept


def _data(rows: LayeredGraph, code: dict[int, str], folder: str) -> dict[str, Any]:
    """What the script knows of each row beyond its text: where it leads, and what to tell when somebody asks."""
    return {"below": rows.below, "told": [_told(item, folder) for item in rows.items], "code": code}


def _told(item: Item, folder: str) -> list[str]:
    """Whole name, sentence, reason, evidence, place; trailing ones that are empty are left off."""
    told = item.told
    evidence = str(item.evidence) if item.evidence != Evidence.NONE else ""
    name = item.name if shortened(item_title(item), NAME) != item.name else ""
    parts = [name, told.text, str(told.why or ""), evidence, str(told.at or "").removeprefix(f"{folder}/")]
    while parts and not parts[-1]:
        parts.pop()
    return [plain(part) for part in parts]


def _lines(parts: Iterator[RenderableType] | Iterator[Text]) -> list[str]:
    """The words of a terminal's lines."""
    return [text for part in parts if (text := _words(part))]


def _words(part: RenderableType) -> str:
    if isinstance(part, Padding):
        return _words(part.renderable)
    return part.plain if isinstance(part, Text) else str(part)
