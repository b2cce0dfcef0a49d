"""The page of an ablation experiment: per script the verdicts and counts, the times as a plot, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.facts import Summary
from analyzer.lab.records import ArmResult, LabResult
from analyzer.lab.tables import by_baseline, ratio_text, verdict_text
from analyzer.views.ablate import agreement_text, effect_rows, seconds_text, told_of
from analyzer.views.html.audit import words
from analyzer.views.html.page import render
from analyzer.views.html.plot import ROW, plot
from analyzer.views.text import byte_text

COLUMNS = (
    "arm",
    "verdict",
    "nodes",
    "groups",
    "calls",
    "loop nests",
    "moved",
    "compile",
    "ratio [95 %]",
    "time per run",
    "results",
)


def ablate_page(result: LabResult) -> str:
    """The page of `ablate --html`."""
    return render(
        "ablate.html.j2",
        scripts=result.scripts,
        columns=COLUMNS,
        by_baseline=by_baseline,
        cells=lambda arm: list(_cells(arm)),
        verdict_text=verdict_text,
        told_of=told_of,
        plot=plot,
        row_height=ROW,
        effects=effect_rows,
        **words(),
    )


def _cells(arm: ArmResult) -> Iterator[str]:
    """What stands behind the arm's name and verdict."""
    summary = arm.after or Summary()
    for count in (summary.scheduler_nodes, summary.groups, summary.kernel_calls, summary.loop_nests):
        yield "?" if count is None else f"{count:,}"
    yield byte_text(summary.bytes_moved)
    yield "-" if arm.run.compile_s is None else f"{arm.run.compile_s:.1f} s"
    yield ratio_text(arm)
    yield seconds_text(arm.time.whole.median_s) if arm.time else ""
    yield agreement_text(arm.agreement)
