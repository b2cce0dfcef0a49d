"""The one or two sentences that explain a verdict, computed from the counts and the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analyzer.ablations import Ablation
from analyzer.audit.ladder import Changes, exists
from analyzer.audit.masking import Masking
from analyzer.audit.postconditions.record import NOTHING, Arm, Count, Postcondition, joined
from analyzer.verdict import Rung, Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and what led to it: reasons why the arms cannot be judged, or the counts of both.

    `advice` is the next step after reasons for UNDECIDED.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    before: Count = NOTHING
    after: Count = NOTHING
    masked: Masking | None = None
    advice: str = "Capture that arm again in a fresh process with all caches off."


@dataclass(frozen=True, slots=True)
class Judged:
    """What a sentence may speak of."""

    finding: Finding
    base: Arm
    ablated: Arm
    ablation: Ablation
    post: Postcondition
    in_force: Rung
    changes: Changes


def sentence(judged: Judged) -> str:
    """Why this verdict, and the next step where there is one."""
    finding = judged.finding
    if finding.reasons:
        return _reasons(finding)
    return _SENTENCES[finding.verdict](judged) + _masked(finding.masked)


def _masked(masked: Masking | None) -> str:
    if masked is None or not masked.by_fusion:
        return ""
    groups = joined(masked.groups, 2)
    text = f" Fusion put {joined(masked.kept)} back into one group with all readers ({groups})"
    return f"{text}: use `inlining+fusion` to keep them apart."


def _reasons(finding: Finding) -> str:
    reasons = "; ".join(finding.reasons)
    if finding.verdict is Verdict.CONFOUNDED:
        return f"The arms differ in more than the ablation: {reasons}. Capture both arms alike."
    return f"{reasons}. {finding.advice}"


def _amount(count: Count) -> str:
    return (str(count.least) if not count.unknown else f"{count.least} to {count.most}") if count.most else "none"


def _counts(judged: Judged) -> str:
    """`Fused groups: 2 in the base (op0_op1, op2_op3), none in the ablated arm.`"""
    counted = judged.post.counted
    before, after = judged.finding.before, judged.finding.after
    named = f" ({joined(before.left)})" if before.left else ""
    old, new = _amount(before), _amount(after)
    return f"{counted[0].upper()}{counted[1:]}: {old} in the base{named}, {new} in the ablated arm."


def _explained(judged: Judged) -> str:
    after = judged.finding.after
    explained = _told_by_the_entry(judged)
    named = f"Left: {joined(after.left)}." if after.left and not explained else ""
    return " ".join(part for part in (explained, named, judged.post.next_step) if part)


def _effective(judged: Judged) -> str:
    return _counts(judged)


def _partial(judged: Judged) -> str:
    return f"{_counts(judged)} {_explained(judged)}"


def _inert(judged: Judged) -> str:
    return f"The switch was in force and changed nothing. {_counts(judged)} {_explained(judged)}"


def _no_opportunity(judged: Judged) -> str:
    return f"Nothing to ablate: {judged.post.satisfied}.{_idle_changes(judged.changes)}"


def _idle_changes(changes: Changes) -> str:
    """What differs without being a change, for a reader who compares the folders."""
    if changes.code_moved:
        return " The code differs in names and order alone."
    dumps = changes.code is False and any((changes.fx, changes.pre, changes.post))
    return " The dumps differ, but the code does the same." if dumps else ""


def _unexpected(judged: Judged) -> str:
    names = {"fx": "the FX graph", "pre": "lowering", "post": "scheduling", "code": "the code"}
    changed = [text for field, text in names.items() if getattr(judged.changes, field)]
    counts = _counts(judged).removesuffix(".")
    text = f"{counts}; yet {' and '.join(changed) or 'something else'} changed."
    return " ".join(part for part in (text, _told_by_the_entry(judged)) if part)


def _told_by_the_entry(judged: Judged) -> str:
    explain = judged.post.explain
    return explain(judged.base, judged.ablated, judged.finding.after) if explain else ""


def _unapplied(judged: Judged) -> str:
    said = "; ".join(citation.text for citation in judged.in_force.evidence)
    equal = ", and IR and code equal the base's" if judged.changes.material is False else ""
    known = "The switch was not" if judged.in_force.held is False else "Nothing shows that the switch was"
    return f"{known} in force when this graph was compiled ({said}){equal}. {_how_to_apply(judged)}"


def _how_to_apply(judged: Judged) -> str:
    settings, switches = judged.ablation.settings, judged.ablation.switches
    possible = switches or not settings or any(exists(setting, judged.ablated.config) for setting in settings)
    return _HOW_TO_APPLY if possible else "Capture both arms with a torch that has it."


def _confounded(judged: Judged) -> str:
    said = "; ".join(citation.text for citation in judged.in_force.evidence)
    return f"The switch was not in force ({said}), yet the code differs: the arms differ in something not recorded."


def _undecided(judged: Judged) -> str:
    unknown = tuple(dict.fromkeys(judged.finding.before.unknown + judged.finding.after.unknown))
    return (
        f"What became of {joined(unknown)} cannot be told from these artifacts, and it decides. "
        "Capture both arms with `inductor-audit capture`: its record says it for every buffer."
    )


_HOW_TO_APPLY = (
    "Set it before the first compile of the function, in the process that compiles, or let "
    "`inductor-audit capture --ablation` do it."
)
_SENTENCES: dict[Verdict, Callable[[Judged], str]] = {
    Verdict.EFFECTIVE: _effective,
    Verdict.PARTIAL: _partial,
    Verdict.INERT: _inert,
    Verdict.NO_OPPORTUNITY: _no_opportunity,
    Verdict.UNEXPECTED: _unexpected,
    Verdict.UNAPPLIED: _unapplied,
    Verdict.CONFOUNDED: _confounded,
    Verdict.UNDECIDED: _undecided,
}
