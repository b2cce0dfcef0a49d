"""The page of an audit: the verdict, why, the ladder with its evidence, and the counts before and after."""

from __future__ import annotations

from analyzer.verdict import AuditResult, Rung, Verdict
from analyzer.views.audit import MEANING, sentences, tail
from analyzer.views.before_after import count_rows
from analyzer.views.html.page import render
from analyzer.views.next_step import next_step

TONES = {
    Verdict.EFFECTIVE: "good",
    Verdict.PARTIAL: "fair",
    Verdict.NO_OPPORTUNITY: "fair",
    Verdict.UNDECIDED: "none",
}
"""How a verdict looks; beside it always stands its word. All others are `bad`."""

MARKS = {True: ("✓", "yes", "good"), False: ("✗", "no", "bad"), None: ("–", "not recorded", "none")}


def audit_page(result: AuditResult) -> str:
    """The page of `audit --html`."""
    return render("audit.html.j2", result=result, step=next_step(result), **words())


def words() -> dict[str, object]:
    """What the templates of verdicts speak with."""
    return {
        "tone": lambda verdict: TONES.get(verdict, "bad"),
        "mark": _mark,
        "meaning": MEANING,
        "sentences": sentences,
        "count_rows": count_rows,
        "tail_in": lambda graph: lambda file: tail(file, graph),
    }


def _mark(rung: Rung) -> tuple[str, str, str]:
    return MARKS[rung.held]
