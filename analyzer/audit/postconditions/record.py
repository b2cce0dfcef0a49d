"""What a postcondition is: what an ablation must leave none of, where that is read, and what may differ beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from analyzer.compare.effective import EffectiveConfig
from analyzer.facts import GraphFacts


class Stage(IntEnum):
    """The stages of a compile, in order."""

    FX = 0
    LOWERING = 1
    SCHEDULING = 2
    CODE = 3


@dataclass(frozen=True, slots=True)
class Arm:
    """One compiled graph of one arm: its facts and the configuration that was in force."""

    facts: GraphFacts
    config: EffectiveConfig


@dataclass(frozen=True, slots=True)
class Count:
    """What is left of an optimisation in one arm: the ids, and those of which the artifacts do not tell.

    `number` only where it is not the number of ids (uses of `at::vec` per kernel, say).
    """

    left: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    number: int | None = None

    @property
    def least(self) -> int:
        """How many there are at least."""
        return len(self.left) if self.number is None else self.number

    @property
    def most(self) -> int:
        """How many there may be."""
        return self.least + len(self.unknown)


NOTHING = Count()
"""Nothing is left, or nothing was counted."""

Measure = Callable[[Arm, Arm], tuple[Count, Count]]
"""Counts in the base and in the ablated arm."""

Explain = Callable[[Arm, Arm, Count], str]
"""Why the ids that the ablated arm still has are left: sentences, or the empty string."""


@dataclass(frozen=True, slots=True)
class Postcondition:
    """How an ablation is judged.

    `counted` says what is counted (plural), `satisfied` what a graph looks like that has none. `earliest` is the first
    stage that the ablation may change: a difference before it comes from something else. `needs` are the fields of
    CompiledGraph that must be readable. `knobs` are settings that govern the optimisation beside those of the registry
    (analyzer/ablations.py). `next_step` is what to do when the ablation had no effect.
    """

    name: str
    counted: str
    satisfied: str
    earliest: Stage
    needs: tuple[str, ...]
    measure: Measure
    knobs: tuple[str, ...] = ()
    next_step: str = ""
    explain: Explain | None = None
    masked_by_fusion: bool = False


def each(count: Callable[[Arm], Count]) -> Measure:
    """A measure that looks at one arm at a time."""
    return lambda base, ablated: (count(base), count(ablated))


def joined(names: tuple[str, ...], limit: int = 4) -> str:
    """`a, b, c, d and 3 more`."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
