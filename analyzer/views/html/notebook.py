"""Rich display in notebooks: `%load_ext analyzer.views.html.notebook` shows runs and results as pages.

Where a shell shows text only, they are what the command line prints. The facts themselves know nothing of it. Each page
sits in a frame of its own, so that neither style nor script of a page meets those of the notebook; the frame may run
the page's script and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

from markupsafe import escape
from rich.console import Console, RenderableType

from analyzer.analyze import analyze
from analyzer.diff.records import RunDiff
from analyzer.facts import GraphFacts
from analyzer.lab.records import LabResult
from analyzer.model import Run
from analyzer.verdict import AuditResult
from analyzer.views.ablate import LabView
from analyzer.views.audit import AuditView
from analyzer.views.diff import DiffView
from analyzer.views.html.ablate import ablate_page
from analyzer.views.html.audit import audit_page
from analyzer.views.html.diff import diff_page
from analyzer.views.html.report import report_page
from analyzer.views.report import ReportView

HEIGHT = 760
"""Pixels of a frame."""

WIDTH = 100
"""Characters of a line of text."""

Shown = Run | GraphFacts | AuditResult | RunDiff | LabResult


def _whole(run: Run) -> tuple[Run, list[GraphFacts]]:
    return run, [analyze(graph) for graph in run.graphs]


def _alone(facts: GraphFacts) -> tuple[Run, list[GraphFacts]]:
    """One graph as a run of its own."""
    graph = facts.graph
    torch = graph.runnable.torch_version if graph.runnable is not None else None
    return Run(graph.path, (graph,), torch), [facts]


_PAGES: Mapping[type, Callable[[Any], str]] = {
    Run: lambda run: report_page(*_whole(run)),
    GraphFacts: lambda facts: report_page(*_alone(facts)),
    AuditResult: audit_page,
    RunDiff: diff_page,
    LabResult: ablate_page,
}
_VIEWS: Mapping[type, Callable[[Any], RenderableType]] = {
    Run: lambda run: ReportView(*_whole(run)),
    GraphFacts: lambda facts: ReportView(*_alone(facts)),
    AuditResult: AuditView,
    RunDiff: DiffView,
    LabResult: LabView,
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

    def __str__(self) -> str:
        """What the command line prints."""
        console = Console(file=StringIO(), width=WIDTH)
        console.print(_VIEWS[type(self.result)](self.result))
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        """What IPython asks for."""
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.page)}"></iframe>'


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext` calls: from then on a cell that ends in a run or a result shows its page."""
    pages, texts = (shell.display_formatter.formatters[form] for form in ("text/html", "text/plain"))
    for kind in _PAGES:
        pages.for_type(kind, lambda result: Display(result)._repr_html_())
        texts.for_type(kind, lambda result, printer, _: printer.text(str(Display(result))))
