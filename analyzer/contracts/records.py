"""Contracts and what became of them, as frozen records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.model import Location, StrEnum


class Outcome(StrEnum):
    """What a check can say. UNDECIDED: the artifacts do not tell, or the contract names what is not there."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """BROKEN before UNDECIDED before KEPT; of nothing nothing is known."""
    found = set(outcomes)
    for outcome in (Outcome.BROKEN, Outcome.UNDECIDED, Outcome.KEPT):
        if outcome in found:
            return outcome
    return Outcome.UNDECIDED


@dataclass(frozen=True, slots=True)
class Selector:
    """A name for FX nodes: see `selectors.py`. `location` is its place in the contract file."""

    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise. `kind` is a name in KINDS, which also says which of the values it has.

    `number`: a limit, in bytes or a count. `items`: what it speaks of. `table`: kernel name patterns, each with items.
    `words`: what is neither, such as backends.
    """

    kind: str
    location: Location
    number: int = 0
    items: tuple[Selector, ...] = ()
    table: tuple[tuple[str, tuple[Selector, ...]], ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contract:
    """Promises under one name. `graph` is a pattern for the names of the graphs that they hold for."""

    name: str
    location: Location
    clauses: tuple[Clause, ...]
    graph: str = "*"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one graph says about one clause; `graph` is None for what concerns the whole run.

    `place` is the line of the program that it is about, or of the contract file where that is at fault.
    """

    outcome: Outcome
    reason: str
    graph: str | None = None
    place: Location | None = None


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """All judgements on one clause."""

    clause: Clause
    judgements: tuple[Judgement, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst."""
        return worst(judgement.outcome for judgement in self.judgements)

    @property
    def telling(self) -> tuple[Judgement, ...]:
        """The judgements that made the outcome what it is."""
        return tuple(judgement for judgement in self.judgements if judgement.outcome == self.outcome)


@dataclass(frozen=True, slots=True)
class ContractResult:
    """A contract and what became of each of its clauses."""

    contract: Contract
    clauses: tuple[ClauseResult, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst: a contract is kept when every clause is."""
        return worst(clause.outcome for clause in self.clauses)


@dataclass(frozen=True, slots=True)
class ContractReport:
    """All contracts in the order of their file."""

    results: tuple[ContractResult, ...]

    def count(self, outcome: Outcome) -> int:
        """How many contracts ended so."""
        return sum(1 for result in self.results if result.outcome == outcome)

    @property
    def outcome(self) -> Outcome:
        """The worst."""
        return worst(result.outcome for result in self.results)
