"""Verdicts that rest on a choice which a device would have made by measuring: nobody can trust those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from analyzer.ablations import ABLATIONS
from analyzer.artifacts.deviceless import AUTOTUNE, PAD_MM, QUESTIONS, SDPA, AssumedChoice
from analyzer.model import CompiledGraph
from analyzer.verdict import Verdict

ADVICE = "Capture both arms on a device to decide it."


@dataclass(frozen=True, slots=True)
class Rests:
    """The ablations whose postcondition counts what a kind of choice decided, and the verdicts that it can turn."""

    ablations: frozenset[str]
    verdicts: frozenset[Verdict]


_ANY = frozenset(entry.name for entry in ABLATIONS)
_NOTHING_FOUND = frozenset({Verdict.INERT, Verdict.NO_OPPORTUNITY})
_COUNTED = frozenset({Verdict.EFFECTIVE, Verdict.PARTIAL, Verdict.INERT, Verdict.NO_OPPORTUNITY, Verdict.UNEXPECTED})
RESTS_ON: Mapping[str, Rests] = {
    # Templates, and what is fused into them, are there because a template was taken for the fastest kernel.
    AUTOTUNE: Rests(frozenset({"matmul-templates", "epilogue-fusion", "prologue-fusion"}), _COUNTED),
    # Products stay unpadded where a device might have padded them: more to ablate, never less.
    PAD_MM: Rests(frozenset({"joint-graph-passes", "pattern-matching", "padding"}), _NOTHING_FOUND),
    # Attention in one kernel leaves no ops where another backend has a dozen: nothing there is no proof of nothing.
    SDPA: Rests(_ANY, _NOTHING_FOUND),
}


def doubts(ablation: str, verdict: Verdict, graphs: Iterable[CompiledGraph]) -> tuple[str, ...]:
    """Why a verdict on these two arms cannot be trusted, one sentence part per kind of choice; empty when it can."""
    found: dict[str, AssumedChoice] = {}
    for choice in _choices(graphs):
        rests = RESTS_ON.get(choice.kind)
        if rests is not None and ablation in rests.ablations and verdict in rests.verdicts:
            found.setdefault(choice.kind, choice)
    return tuple(_doubt(verdict, choice) for choice in found.values())


def _choices(graphs: Iterable[CompiledGraph]) -> Iterator[AssumedChoice]:
    for graph in graphs:
        if graph.deviceless is not None:
            yield from graph.deviceless.choices


def _doubt(verdict: Verdict, choice: AssumedChoice) -> str:
    question = QUESTIONS.get(choice.kind, choice.kind)
    return (
        f"{verdict} would rest on an assumption: there was no device to tell {question} "
        f"({choice.subject}: {choice.chosen} was assumed)"
    )
