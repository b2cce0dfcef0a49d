"""The inline-versus-fuse ledger, what it costs, and the reasons that belong to it, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.facts import GraphFacts
from analyzer.reasons.apart import Apart
from analyzer.reasons.costs import Costs, Recomputed, Saved, costs
from analyzer.reasons.ledger import Entry, ledger
from analyzer.reasons.why import CONSISTENT, Why
from analyzer.views.text import byte_text, counted, cut, headed, indented, listed, more, plain, shortened

ENTRIES = 20
OFFENDERS = 5
PAIRS = 8
"""Lines per list on the first screens; `--full` shows all."""


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What lowering and scheduling did with each op, why, what stayed apart, and what all of it costs."""

    facts: GraphFacts
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        written = ledger(self.facts)
        yield Text("Inlined or fused, and why", style="bold")
        shown, left = cut(written.entries, ENTRIES, self.full)
        for entry in shown:
            for line in _entry_lines(entry, self.full):
                yield indented(line)
        yield from more(left, "op")
        if written.apart:
            yield Text("Groups that stayed apart, though one reads the other", style="bold")
            for line in apart_lines(written.apart, self.full):
                yield indented(line)
        yield from cost_lines(costs(self.facts), self.full)


def why_line(why: Why) -> Text:
    """A reason; that it is a guess stands before it."""
    head, style = ("because ", "dim") if why.recorded else (CONSISTENT, "dim italic")
    return Text.assemble((head, style), plain(why.text), overflow="fold")


def _entry_lines(entry: Entry, full: bool) -> Iterator[RenderableType]:
    yield headed(plain(entry.node if full else shortened(entry.node)), f"  {plain(entry.told)}")
    if entry.why is not None:
        yield indented(why_line(entry.why))


def apart_lines(pairs: Sequence[Apart], full: bool) -> Iterator[RenderableType]:
    """One paragraph per pair of groups: who, and why not."""
    shown, left = cut(pairs, PAIRS, full)
    for pair in shown:
        one, other = (plain(name if full else shortened(name)) for name in (pair.first, pair.second))
        shared = f" (both touch {listed(pair.shared, full=full)})" if pair.shared else ""
        yield headed(f"{one} and {other}", shared)
        yield indented(_reason(pair.why))
        if pair.likely is not None:
            yield indented(why_line(pair.likely))
    yield from more(left, "pair")


def _reason(why: Why) -> Text:
    return Text(plain(why.text), overflow="fold") if why.recorded else why_line(why)


def cost_lines(counted_costs: Costs, full: bool) -> Iterator[RenderableType]:
    """What inlining computes again and fusion saves, the top offenders first."""
    for title, noun, lines in (
        ("Computed again because of inlining", "op", [_again(found) for found in counted_costs.recomputed]),
        ("Saved by fusion", "group", [_saved(found, full) for found in counted_costs.saved]),
    ):
        if lines:
            yield Text(title, style="bold")
            shown, left = cut(lines, OFFENDERS, full)
            for line in shown:
                yield indented(line)
            yield from more(left, noun)
    if counted_costs.unsized:
        yield Text(
            f"Not counted, sizes are not known as numbers: {listed(counted_costs.unsized, full=full)}", style="yellow"
        )


def _again(found: Recomputed) -> Text:
    many = f"{found.most:,}" if found.least == found.most else f"{found.least:,} to {found.most:,}"
    where = f"in {listed(found.places, most=6)}"
    instead = f"; a buffer would move {byte_text(found.realizing_bytes)}" if found.realizing_bytes is not None else ""
    kept = "" if len(found.groups) > 1 or found.least == found.most else ", one group: its kernel may share the work"
    return headed(plain(found.node), f"  {many} elements again, {where}{kept}{instead}")


def _saved(found: Saved, full: bool) -> Text:
    name = plain(found.group if full else shortened(found.group))
    inside = f"; {counted(len(found.kept_inside), 'buffer')} used up inside" if found.kept_inside else ""
    moved = f"{byte_text(found.together_bytes)} instead of {byte_text(found.apart_bytes)}"
    return headed(name, f"  {byte_text(found.bytes)} ({moved}{inside})")
