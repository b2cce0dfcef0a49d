"""The table of one graph's counts in two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.facts import Summary
from analyzer.views.text import byte_text

_Value = Callable[[Summary], int | None]
_Tell = Callable[[int | None], str]


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


_COUNTS: tuple[tuple[str, _Value], ...] = (
    ("realized values", lambda summary: summary.realized),
    ("inlined values", lambda summary: summary.inlined),
    ("scheduler nodes", lambda summary: summary.scheduler_nodes),
    ("groups", lambda summary: summary.groups),
    ("kernels", lambda summary: summary.kernels),
    ("kernel calls", lambda summary: summary.kernel_calls),
    ("loop nests", lambda summary: summary.loop_nests),
    ("buffers fused away", lambda summary: summary.removed_buffers),
)
_BYTES: tuple[tuple[str, _Value], ...] = (
    ("allocated", lambda summary: summary.allocated_bytes),
    ("read by kernels", lambda summary: summary.bytes_read),
    ("written by kernels", lambda summary: summary.bytes_written),
)

_TABLES: tuple[tuple[tuple[tuple[str, _Value], ...], _Tell], ...] = ((_COUNTS, _number), (_BYTES, byte_text))
_SAME = "same"


def before_after(before: Summary | None, after: Summary | None) -> RenderableType:
    """The counts of each arm and their change, or one line when all are equal.

    `?` where a count is not known, `-` where an arm has no such graph.
    """
    rows = list(count_rows(before, after))
    if before == after:
        return Text("Same before and after: " + ", ".join(f"{label} {old}" for label, old, _, _ in rows))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    table.add_column("change")
    for label, *told in rows:
        table.add_row(Text(label), *(Text(text, style="" if told[-1] == _SAME else "bold") for text in told))
    return table


def count_rows(before: Summary | None, after: Summary | None) -> Iterator[tuple[str, str, str, str]]:
    """Label, before, after and change of every count that at least one arm knows."""
    for labels, tell in _TABLES:
        for label, value in labels:
            old, new = (value(summary) if summary is not None else None for summary in (before, after))
            if (old, new) != (None, None):
                yield label, _told(old, before, tell), _told(new, after, tell), _change(old, new, tell)


def _told(number: int | None, summary: Summary | None, tell: _Tell) -> str:
    return "-" if summary is None else tell(number)


def _change(old: int | None, new: int | None, tell: _Tell) -> str:
    if old is None or new is None:
        return "not known"
    if old == new:
        return _SAME
    return f"{'+' if new > old else '-'}{tell(abs(new - old))}"
