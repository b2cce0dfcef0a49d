"""The page of a diff: settings and surroundings, then per graph the counts and the changes layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.diff.records import GraphDiff, Layer, Repeated, RunDiff
from analyzer.diff.repeats import collapse
from analyzer.views.diff import MARKS, code_lines, headline, setting_cells, title_text, values_text
from analyzer.views.html.audit import words
from analyzer.views.html.page import render


def diff_page(diff: RunDiff) -> str:
    """The page of `diff --html`."""
    return render(
        "diff.html.j2",
        diff=diff,
        headline=lambda graph: headline(graph).plain,
        layers=_layers,
        setting=setting_cells,
        mark=lambda entry: MARKS[entry.change.kind][0],
        title=lambda entry: title_text(entry.change),
        values=lambda entry: values_text(entry.change, full=True),
        code=lambda entry: code_lines(entry.change),
        **{name: word for name, word in words().items() if name != "mark"},
    )


def _layers(graph: GraphDiff) -> list[tuple[str, Sequence[Repeated]]]:
    """The layers that differ, each with its changes; equal ones stand together."""
    found = ((str(layer), collapse(change for change in graph.changes if change.layer == layer)) for layer in Layer)
    return [(layer, changes) for layer, changes in found if changes]
