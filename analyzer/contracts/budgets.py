"""Promises about numbers of each graph: calls, groups, buffers, bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.contracts.records import Clause, Judgement, Outcome
from analyzer.contracts.scope import Scope, missing
from analyzer.facts import GraphFacts, Summary

_SOURCES = ("fx_graph_transformed.py", "ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py")


@dataclass(frozen=True, slots=True)
class Budget:
    """A number of a graph that may not be larger than the clause says."""

    noun: str
    count: Callable[[Summary], int | None]

    def __call__(self, clause: Clause, scope: Scope) -> Iterator[Judgement]:
        """One judgement per graph."""
        for facts in scope.graphs:
            yield self._judge(facts, clause.number)

    def _judge(self, facts: GraphFacts, limit: int) -> Judgement:
        number = self.count(facts.summary)
        if number is None:
            why = missing(facts, *_SOURCES) or "a size is symbolic, or an artifact could not be read"
            reason = f"the number of {self.noun} is not known: {why}"
            return Judgement(Outcome.UNDECIDED, reason, facts.graph.name)
        outcome = Outcome.KEPT if number <= limit else Outcome.BROKEN
        return Judgement(outcome, f"{self.noun}: {number:,}, at most {limit:,} promised", facts.graph.name)


def graphs_of_run(clause: Clause, scope: Scope) -> Iterator[Judgement]:
    """How many graphs were compiled."""
    number = len(scope.graphs)
    outcome = Outcome.KEPT if number <= clause.number else Outcome.BROKEN
    yield Judgement(outcome, f"graphs: {number:,}, at most {clause.number:,} promised")
