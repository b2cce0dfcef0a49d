"""Sums up how an arm's outputs compare with its baseline's, graph by graph (inside/compare.py does the comparing)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analyzer.lab.records import Agreement


def agreement(graphs: Mapping[str, Mapping[str, Any]], expected: Iterable[str]) -> Agreement:
    """Over all graphs: one that differs decides; one that could not be compared leaves the rest undecided.

    `graphs`: each graph's `close`, `max_abs`, `max_rel`, `reason` and `inputs`; `expected`: the baseline's graphs.
    """
    absent = [name for name in expected if name not in graphs]
    far = [name for name, one in graphs.items() if one["close"] is False]
    unknown = [name for name, one in graphs.items() if one["close"] is None]
    close = False if far else None if unknown or absent or not graphs else True
    return Agreement(
        close,
        _largest(one["max_abs"] for one in graphs.values()),
        _largest(one["max_rel"] for one in graphs.values()),
        all(one["inputs"] == "same" for one in graphs.values()),
        _reason(graphs, far or unknown, absent),
    )


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _reason(graphs: Mapping[str, Mapping[str, Any]], named: list[str], absent: list[str]) -> str | None:
    if named:
        return f"{named[0]}: {graphs[named[0]]['reason']}"
    return f"this arm did not call {', '.join(absent)}" if absent else None
