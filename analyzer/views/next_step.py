"""What to do after an audit."""

from __future__ import annotations

from analyzer.ablations import ABLATIONS
from analyzer.verdict import AuditResult, Verdict

_INSTEAD = {"realize-thresholds": "inlining"}
"""Ablations that have another one's aim without its means."""

_STEPS = {
    Verdict.PARTIAL: "credit a speedup only to the part that changed; `--full` lists all that is left",
    Verdict.INERT: "credit no speedup to this arm",
    Verdict.NO_OPPORTUNITY: "switch the feature on in the baseline, or choose a program that uses it",
    Verdict.UNEXPECTED: "compare `inductor-audit report` of both runs before trusting this arm",
    Verdict.UNAPPLIED: "set it before the first compile, or leave that to `inductor-audit capture --ablation`",
    Verdict.CONFOUNDED: "capture both arms anew with one interpreter, one script and the same arguments",
    Verdict.UNDECIDED: "capture both arms with `inductor-audit capture`, which records all that is needed",
}


def next_step(result: AuditResult) -> str | None:
    """One step; None after a verdict that leaves nothing to do."""
    if result.verdict == Verdict.EFFECTIVE:
        return _unmask(result)
    step = _STEPS[result.verdict]
    if result.verdict in (Verdict.INERT, Verdict.PARTIAL) and result.ablation in _INSTEAD:
        aim = _INSTEAD[result.ablation]
        return f"{step}; `inductor-audit capture --ablation {aim}` switches {aim} off"
    return step


def _unmask(result: AuditResult) -> str | None:
    if result.masked_by is None:
        return None
    both = f"{result.ablation}+{result.masked_by}"
    if both in {entry.name for entry in ABLATIONS}:
        return f"`inductor-audit capture --ablation {both}` shows it in the code too"
    return f"switch {result.masked_by} off in both arms to see it in the code"
