"""The explanation of a name as trees, of two names as an answer, and both as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from analyzer.describe import Told
from analyzer.explain import Explanation, PairExplanation, Step
from analyzer.graph import EdgeKind, Key, NodeKind
from analyzer.model import Location
from analyzer.reasons.apart import Apart
from analyzer.views.ledger import apart_lines, why_line
from analyzer.views.links import artifact_link
from analyzer.views.text import counted, cut, headed, indented, listed, more, plain, shortened

SCHEMA_VERSION = 1

STEPS = 8
"""Branches per step on the first screens; `--full` shows all."""

_KINDS = {
    NodeKind.SOURCE: "line",
    NodeKind.PRE_OP: "pre-grad op",
    NodeKind.FX_NODE: "FX node",
    NodeKind.BUFFER: "buffer",
    NodeKind.SCHEDULER_NODE: "scheduler node",
    NodeKind.GROUP: "group",
    NodeKind.KERNEL: "kernel",
}


@dataclass(frozen=True, slots=True)
class ExplainView:
    """What a name is, came from and became, graph by graph."""

    explanations: Sequence[Explanation]
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for position, explanation in enumerate(self.explanations):
            if position:
                yield Text("")
            yield from _explanation(explanation, self.full)


@dataclass(frozen=True, slots=True)
class PairView:
    """Why two names are, or are not, in one group."""

    explanations: Sequence[PairExplanation]
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for position, pair in enumerate(self.explanations):
            if position:
                yield Text("")
            yield headed("Graph ", plain(pair.graph), "dim")
            yield Text("")
            yield Text(_answer(pair), style="bold", overflow="fold")
            for line in apart_lines(pair.apart, self.full):
                yield indented(line)
            yield Text("")
            yield _lines(pair.first, self.full)
            yield _lines(pair.second, self.full)


def _answer(pair: PairExplanation) -> str:
    one, other = (_name(step.key, full=False) for step in (pair.first, pair.second))
    for name, groups in ((one, pair.first_groups), (other, pair.second_groups)):
        if not groups:
            return f"{name} is in no group: nothing is computed for it, so there is nothing to fuse"
    if pair.together and not pair.apart:
        return f"{one} and {other} are both computed in group {listed(pair.together)}"
    if pair.together:
        return f"{one} and {other} meet in group {listed(pair.together)}, and are computed elsewhere too"
    function = f"; one function runs both groups, each in loops of its own: {listed(pair.one_function)}"
    return f"{one} and {other} are not in one group{function if pair.one_function else ''}"


def _explanation(explanation: Explanation, full: bool) -> Iterator[RenderableType]:
    yield headed("Graph ", plain(explanation.graph), "dim")
    yield Text("")
    yield _lines(explanation.subject, full)
    for title, steps in (("Came from", explanation.came_from), ("Became", explanation.became)):
        if steps:
            yield Text("")
            yield _tree(title, steps, full)
    if explanation.apart:
        yield Text("")
        yield Text("Not fused with", style="bold")
        for line in apart_lines(explanation.apart, full):
            yield indented(line)


def _tree(title: str, steps: Sequence[Step], full: bool) -> Tree:
    tree = Tree(Text(title, style="bold"), guide_style="dim")
    _grow(tree, steps, full)
    return tree


def _grow(tree: Tree, steps: Sequence[Step], full: bool) -> None:
    shown, left = cut(steps, STEPS, full)
    for step in shown:
        _grow(tree.add(_lines(step, full)), step.next, full)
    for line in more(left, "step"):
        tree.add(line)


def _lines(step: Step, full: bool) -> RenderableType:
    """Name and sentence, then the reason, then the places."""
    head = headed(_name(step.key, full), "")
    if step.link == EdgeKind.INLINED_INTO:
        head.append(" (inlined)", style="cyan")
    if step.again:
        return head.append(" (see above)", style="dim")
    text = plain(step.told.text)
    if text:
        head.append(f"  {text if full else shortened(text, 300)}")
    # A buffer and the node it holds have one reason: the step before has told it.
    reason = [why_line(step.told.why)] if step.told.why is not None and step.link != EdgeKind.LOWERS_TO else []
    return Group(head, *reason, *_places(step.told, full))


def _name(key: Key, full: bool) -> str:
    kind, name = key
    told = name.replace("\\", "/").rpartition("/")[2] if kind == NodeKind.SOURCE and not full else name
    return f"{_KINDS[NodeKind(kind)]} {plain(told if full else shortened(told))}"


def _places(told: Told, full: bool) -> Iterator[Text]:
    """Where the artifacts show it, on one line."""
    places = [place for place in (told.at, *told.also) if place is not None]
    shown, left = cut(places, 3, full)
    if shown:
        links = Text(", ").join(artifact_link(_place(place, full), place) for place in shown)
        rest = f" and {counted(left, 'more place')}" if left else ""
        yield Text.assemble("at ", links, rest, style="dim", overflow="fold")


def _place(place: Location, full: bool) -> str:
    return plain(str(place) if full else f"{place.file.rpartition('/')[2]}:{place.line}")


# ---------------------------------------------------------------------------------------------------------------- JSON


def explain_document(explanations: Sequence[Explanation]) -> dict[str, Any]:
    """The document of `explain RUN NAME --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "explanations": [
            {
                "graph": explanation.graph,
                "subject": _step(explanation.subject),
                "came_from": [_step(step) for step in explanation.came_from],
                "became": [_step(step) for step in explanation.became],
                "apart": [_apart(pair) for pair in explanation.apart],
            }
            for explanation in explanations
        ],
    }


def pair_document(pairs: Sequence[PairExplanation]) -> dict[str, Any]:
    """The document of `explain RUN A B --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "pairs": [
            {
                "graph": pair.graph,
                "first": _step(pair.first),
                "second": _step(pair.second),
                "first_groups": list(pair.first_groups),
                "second_groups": list(pair.second_groups),
                "together": list(pair.together),
                "apart": [_apart(apart) for apart in pair.apart],
                "one_function": list(pair.one_function),
            }
            for pair in pairs
        ],
    }


def _step(step: Step) -> dict[str, Any]:
    kind, name = step.key
    places = [place for place in (step.told.at, *step.told.also) if place is not None]
    return {
        "kind": kind,
        "name": name,
        "link": step.link,
        "text": step.told.text,
        "why": None if step.told.why is None else {"text": step.told.why.text, "recorded": step.told.why.recorded},
        "at": [{"file": place.file, "line": place.line, "column": place.column} for place in places],
        "again": step.again,
        "next": [_step(following) for following in step.next],
    }


def _apart(pair: Apart) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "shared": list(pair.shared),
        "why": {"text": pair.why.text, "recorded": pair.why.recorded},
        "likely": None if pair.likely is None else pair.likely.text,
    }
