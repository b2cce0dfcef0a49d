"""Verdicts that rest on a choice which a device would have made by measuring: nobody can trust those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analyzer.ablations import ABLATIONS
from analyzer.artifacts.deviceless import AUTOTUNE, PAD_MM, QUESTIONS, SDPA, AssumedChoice
from analyzer.audit.postconditions.fusion import is_template
from analyzer.model import CompiledGraph
from analyzer.verdict import Verdict

ADVICE = "Capture both arms on a device to decide it."


@dataclass(frozen=True, slots=True)
class Rests:
    """The ablations whose postcondition counts what a kind of choice decided, and the verdicts that it can turn.

    `templates_only`: only where nothing else was counted than groups with a template in them.
    """

    kind: str
    ablations: frozenset[str]
    verdicts: frozenset[Verdict]
    templates_only: bool = False


_ANY = frozenset(entry.name for entry in ABLATIONS)
_NOTHING_FOUND = frozenset({Verdict.INERT, Verdict.NO_OPPORTUNITY})
_COUNTED = frozenset({Verdict.EFFECTIVE, Verdict.PARTIAL, Verdict.INERT, Verdict.NO_OPPORTUNITY, Verdict.UNEXPECTED})
RESTS_ON = (
    # Templates, and what is fused into them, are there because a template was taken for the fastest kernel.
    Rests(AUTOTUNE, frozenset({"matmul-templates", "epilogue-fusion", "prologue-fusion"}), _COUNTED),
    # An epilogue's group is a fused one; any other fused group is there whichever kernel wins.
    Rests(AUTOTUNE, frozenset({"fusion", "vertical-fusion", "inlining+fusion"}), _COUNTED, templates_only=True),
    # Products stay unpadded where a device might have padded them: more to ablate, never less.
    Rests(PAD_MM, frozenset({"joint-graph-passes", "pattern-matching", "padding"}), _NOTHING_FOUND),
    # Attention in one kernel leaves no ops where another backend has a dozen: nothing there is no proof of nothing.
    Rests(SDPA, _ANY, _NOTHING_FOUND),
)


def doubts(
    ablation: str, verdict: Verdict, graphs: Iterable[CompiledGraph], counted: Sequence[str] = ()
) -> tuple[str, ...]:
    """Why a verdict on these two arms cannot be trusted, one sentence part per kind of choice; empty when it can.

    `counted`: what the verdict rests on, as the postcondition names it: what was there, of an EFFECTIVE arm, and what
    is left, of any other.
    """
    arms = tuple(graphs)
    resting = [one for one in RESTS_ON if ablation in one.ablations and verdict in one.verdicts]
    kinds = {one.kind for one in resting if not one.templates_only or _only_templates(counted, arms)}
    found: dict[str, AssumedChoice] = {}
    for choice in _choices(arms):
        if choice.kind in kinds:
            found.setdefault(choice.kind, choice)
    return tuple(_doubt(verdict, choice) for choice in found.values())


def _only_templates(counted: Sequence[str], graphs: Iterable[CompiledGraph]) -> bool:
    """Whether all that was counted (groups, or `producer -> consumer` in one) lies in groups with a template."""
    groups = [group for graph in graphs if graph.post for group in graph.post.nodes]
    with_template = [group for group in groups if any(map(is_template, group.leaves()))]
    names = {name for group in with_template for name in (group.name, *(leaf.name for leaf in group.leaves()))}
    return all(part in names for item in counted for part in item.split(" -> "))


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
