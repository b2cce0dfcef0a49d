"""What an audit concludes: verdicts, rungs of the ladder with their evidence, and the summary of a whole run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.facts import Summary
from analyzer.model import Location, StrEnum


class Verdict(StrEnum):
    """What an ablation did to a graph, or to a run."""

    EFFECTIVE = "EFFECTIVE"
    PARTIAL = "PARTIAL"
    INERT = "INERT"
    NO_OPPORTUNITY = "NO_OPPORTUNITY"
    UNEXPECTED = "UNEXPECTED"
    UNAPPLIED = "UNAPPLIED"
    CONFOUNDED = "CONFOUNDED"
    UNDECIDED = "UNDECIDED"


class RungName(StrEnum):
    """The steps from a switch to its effect, in order."""

    REQUESTED = "requested"
    APPLIED = "applied"
    LOWERING = "lowering changed"
    SCHEDULING = "scheduling changed"
    CODE = "code changed"


@dataclass(frozen=True, slots=True)
class Citation:
    """A place in an artifact that supports a statement, and what it says; `line` is None where no line does."""

    file: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder; `held` is None when the artifacts do not record it."""

    rung: RungName
    held: bool | None
    evidence: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphAudit:
    """The verdict on one graph.

    `left_before` and `left_after` are the ids that still violate the postcondition in each arm, `counted` says what
    they are; `before` and `after` are the counts of the graph in each arm, None where an arm has no such graph.
    """

    name: str
    verdict: Verdict
    why: str
    masked_by: str | None = None
    rungs: tuple[Rung, ...] = ()
    before: Summary | None = None
    after: Summary | None = None
    counted: str = ""
    left_before: tuple[str, ...] = ()
    left_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The verdict on a pair of runs: that of its graphs, and their worst-case summary."""

    ablation: str
    verdict: Verdict
    masked_by: str | None
    graphs: tuple[GraphAudit, ...]
    notes: tuple[str, ...] = ()


_DECIDING = (Verdict.UNDECIDED, Verdict.CONFOUNDED)
_WORST_FIRST = (Verdict.UNEXPECTED, Verdict.UNAPPLIED, Verdict.INERT, Verdict.NO_OPPORTUNITY)


def summarize(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a run: what nobody can decide or trust decides; one graph that falls short makes it PARTIAL."""
    found = set(verdicts)
    for verdict in _DECIDING:
        if verdict in found or not found:
            return verdict
    if Verdict.EFFECTIVE in found and found <= {Verdict.EFFECTIVE, Verdict.NO_OPPORTUNITY}:
        return Verdict.EFFECTIVE
    if found & {Verdict.EFFECTIVE, Verdict.PARTIAL}:
        return Verdict.PARTIAL
    return next(verdict for verdict in _WORST_FIRST if verdict in found)


def cite(location: Location | None, text: str, file: str = "") -> Citation:
    """A citation of a record's place; `file` names the artifact when the record has no place."""
    if location is None:
        return Citation(file, None, text)
    return Citation(location.file, location.line, text)
