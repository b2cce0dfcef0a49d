"""FX nodes of another shape or dtype only because what they read has another one: a batch of 48 where there were 32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analyzer.diff.fx_matching import FxMatching
from analyzer.model import FxNode

Aspect = Literal["dtype", "shape"]
ASPECTS: tuple[Aspect, ...] = ("dtype", "shape")


def differ(matching: FxMatching, one: FxNode, other: FxNode, aspect: Aspect) -> bool:
    """Whether both nodes know the aspect, and it is another one; symbols count by rank."""
    if None in (getattr(one, aspect), getattr(other, aspect)):
        return False
    return one.dtype != other.dtype if aspect == "dtype" else matching.unlike_sizes(one.shape, other.shape)


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a difference goes through matched nodes, by their old names.

    `following` are calls that differ only because an argument does; `reached` are these, those where it starts, and
    tuples, which pass it on.
    """

    following: frozenset[str]
    reached: frozenset[str]


def spread(matching: FxMatching, aspect: Aspect) -> Spread:
    """A dtype follows when it becomes what that of an argument became; a shape however it changes."""
    reached: dict[str, object] = {}
    following = set[str]()
    for one, other in matching.pairs():
        values = getattr(one, aspect), getattr(other, aspect)
        unlike = differ(matching, one, other, aspect)
        change = values if aspect == "dtype" and unlike else None
        sources = [reached[name] for name in one.inputs if name in reached]
        if unlike and one.target == other.target and any(change in (source, None) for source in sources):
            following.add(one.name)
        if unlike or (None in values and sources):
            reached[one.name] = change if unlike else sources[0]
    return Spread(frozenset(following), frozenset(reached))
