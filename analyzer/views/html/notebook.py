"""Rich display in notebooks: `%load_ext analyzer.views.html.notebook` shows runs and results as pages.

The facts themselves know nothing of it. Each page sits in a frame of its own, so that neither style nor script of a
page meets those of the notebook; the frame may run the page's script and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from analyzer.analyze import analyze
from analyzer.diff.records import RunDiff
from analyzer.facts import GraphFacts
from analyzer.lab.records import LabResult
from analyzer.model import Run
from analyzer.verdict import AuditResult
from analyzer.views.html.ablate import ablate_page
from analyzer.views.html.audit import audit_page
from analyzer.views.html.diff import diff_page
from analyzer.views.html.report import report_page

HEIGHT = 760
"""Pixels of a frame."""

Shown = Run | GraphFacts | AuditResult | RunDiff | LabResult


def _run_page(run: Run) -> str:
    return report_page(run, [analyze(graph) for graph in run.graphs])


def _graph_page(facts: GraphFacts) -> str:
    graph = facts.graph
    torch = graph.runnable.torch_version if graph.runnable is not None else None
    return report_page(Run(graph.path, (graph,), torch), [facts])


_PAGES: Mapping[type, Callable[[Any], str]] = {
    Run: _run_page,
    GraphFacts: _graph_page,
    AuditResult: audit_page,
    RunDiff: diff_page,
    LabResult: ablate_page,
}


@dataclass(frozen=True)
class Display:
    """A result as a notebook shows it: make one as the last line of a cell. `page` is the whole HTML document."""

    result: Shown
    height: int = HEIGHT

    @property
    def page(self) -> str:
        """The page that `--html` would write."""
        return _PAGES[type(self.result)](self.result)

    def _repr_html_(self) -> str:
        """What IPython asks for."""
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.page)}"></iframe>'


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext` calls: from then on a cell that ends in a run or a result shows its page."""
    formatter = shell.display_formatter.formatters["text/html"]
    for kind in _PAGES:
        formatter.for_type(kind, lambda result: Display(result)._repr_html_())
