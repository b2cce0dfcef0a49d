"""The banner over artifacts for a GPU that was not there, and the choices that were assumed for a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from analyzer.artifacts.deviceless import QUESTIONS, Deviceless
from analyzer.facts import GraphFacts
from analyzer.views.text import counted, headed, listed, plain


def banner_lines(graphs: Sequence[GraphFacts]) -> Iterator[Text]:
    """What to know before reading on: nothing below ran on a device."""
    records = [facts.graph.deviceless for facts in graphs if facts.graph.deviceless is not None]
    if not records:
        return
    devices = sorted({record.device for record in records})
    yield headed(
        "No device: ", f"code for {listed(devices, full=True)}, generated without one; nothing ran", "bold yellow"
    )
    notes = dict.fromkeys(note for record in records for note in record.support_notes)
    if notes:
        yield headed("Experimental: ", plain("; ".join(notes)), "bold yellow")
    broken = sorted({patch.name for record in records for patch in record.patches if patch.error is not None})
    if broken:
        yield headed("Not replaced in torch: ", listed(broken, full=True), "bold red")


def choice_lines(record: Deviceless | None, full: bool) -> Iterator[Text]:
    """The assumed choices of a graph, by the question that was left open."""
    for kind in dict.fromkeys(choice.kind for choice in record.choices) if record is not None else ():
        found = [choice for choice in record.choices if choice.kind == kind] if record is not None else []
        told = [f"{choice.subject}: {choice.chosen}" for choice in found]
        question = QUESTIONS.get(kind, kind)
        yield headed(
            "Assumed: ", f"{plain(question)} ({counted(len(found), 'choice')}): {listed(told, 2, full)}", "yellow"
        )
