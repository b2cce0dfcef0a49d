"""What a report must admit: how much is attributed and on which evidence, what disagrees, what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from analyzer.facts import Conflict, Evidence, Fate, GraphFacts
from analyzer.model import Artifact, ArtifactState
from analyzer.views.links import artifact_link
from analyzer.views.text import counted, cut, headed, indented, listed, more, plain, shortened

_COMPUTE_NOTHING = (Fate.INPUT, Fate.CONSTANT, Fate.VIEW)

LINES = 5
"""Conflicts, reasons or problems per list on the first screens; `--full` shows all."""


class _Attributed(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def evidence(self) -> Evidence: ...

    @property
    def reason(self) -> str | None: ...


def attribution_lines(facts: GraphFacts, full: bool) -> Iterator[Text]:
    """The honesty line, and why what is unknown is unknown."""
    nodes = [fact for fact in facts.nodes if fact.fate not in _COMPUTE_NOTHING and fact.node.op != "output"]
    unknown_nodes = [fact for fact in nodes if fact.fate == Fate.UNKNOWN]
    unknown_buffers = [fact for fact in facts.buffers if fact.evidence == Evidence.NONE]
    told = [
        text
        for text in (
            _attributed("FX node", nodes, [fact.evidence for fact in nodes if fact.fate != Fate.UNKNOWN]),
            _attributed("buffer", facts.buffers, [f.evidence for f in facts.buffers if f.evidence != Evidence.NONE]),
        )
        if text
    ]
    yield headed("Attributed: ", "; ".join(told) or "nothing to attribute")
    yield from _reasons((*unknown_nodes, *unknown_buffers), full)


def _attributed(noun: str, facts: Sequence[object], known: Sequence[Evidence]) -> str:
    if not facts:
        return ""
    by = Counter(known)
    sources = [f"{by[evidence]} by {evidence}" for evidence in Evidence if by[evidence] and evidence != Evidence.NONE]
    unknown = [f"{len(facts) - len(known)} unknown"] if len(known) < len(facts) else []
    total = f"{len(known):,} of {counted(len(facts), noun)}"
    return f"{total} ({', '.join(sources + unknown)})" if sources or unknown else total


def _reasons(unknown: Sequence[_Attributed], full: bool) -> Iterator[Text]:
    """One line per reason, with the names that share it."""
    names: dict[str, list[str]] = {}
    for fact in unknown:
        names.setdefault(fact.reason or "no reason recorded", []).append(fact.name)
    shown, left = cut(list(names.items()), LINES, full)
    for reason, sharing in shown:
        yield headed("  unknown: ", f"{listed(sharing, full=full)}: {plain(reason)}", "yellow")
    yield from more(left, "reason")


def oddity_lines(facts: GraphFacts, full: bool) -> Iterator[RenderableType]:
    """Sources that disagree, artifacts that were not read whole, and dumps that took the place of others."""
    shown, left = cut(facts.conflicts, LINES, full)
    for conflict in shown:
        yield _conflict_line(conflict)
    yield from more(left, "conflict")
    for artifact in facts.graph.artifacts:
        if artifact.state != ArtifactState.PARSED:
            yield from _artifact_lines(artifact, full)
    if facts.graph.overwritten:
        names = plain(", ".join(facts.graph.overwritten))
        yield Text(f"The dumps of {names} took the place of this graph's own", style="yellow")


def whole_line(facts: GraphFacts) -> Iterator[Text]:
    """How much was read without a gap."""
    whole = [artifact for artifact in facts.graph.artifacts if artifact.state == ArtifactState.PARSED]
    if whole:
        lines = sum(artifact.lines for artifact in whole)
        yield Text(f"Read whole: {counted(len(whole), 'artifact')}, {counted(lines, 'line')}", style="dim")


def _conflict_line(conflict: Conflict) -> Text:
    said = (
        f"{plain(conflict.subject)}: {conflict.believed} says {plain(conflict.said)} (believed), {conflict.other} says "
    )
    return headed("Conflict: ", said + plain(conflict.other_said), "bold yellow")


def _artifact_lines(artifact: Artifact, full: bool) -> Iterator[RenderableType]:
    told = plain(artifact.file)
    if artifact.unparsed_lines:
        told += f", {artifact.unparsed_lines:,} of {counted(artifact.lines, 'line')} not understood"
    if artifact.cause:
        told += f" ({plain(artifact.cause)})"
    yield headed(f"{str(artifact.state).capitalize()}: ", told, "yellow")
    shown, left = cut(artifact.problems, LINES, full)
    for problem in shown:
        place = str(problem.location)
        message = plain(problem.message if full else shortened(problem.message, 200))
        link = artifact_link(plain(place if full else place.rpartition("/")[2]), problem.location)
        yield indented(link.append(f": {message}"))
    yield from more(left, "problem")
