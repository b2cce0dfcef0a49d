"""Contracts and a run → what was kept, what was broken, and what cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from analyzer.analyze import analyze
from analyzer.contracts.kinds import Kind, kind_of
from analyzer.contracts.records import (
    Clause,
    ClauseResult,
    Contract,
    ContractReport,
    ContractResult,
    Judgement,
    Outcome,
)
from analyzer.contracts.scope import Scope
from analyzer.errors import UsageError
from analyzer.facts import GraphFacts
from analyzer.model import Run


def check(contracts: Sequence[Contract], run: Run, facts: Sequence[GraphFacts] | None = None) -> ContractReport:
    """Judge every contract. `facts` spare a second analysis.

    What a run lacks never raises: such a contract is UNDECIDED, with the reason.
    """
    graphs = tuple(facts if facts is not None else (analyze(graph) for graph in run.graphs))
    scope = Scope.of(run, graphs)
    return ContractReport(tuple(_judged(contract, scope) for contract in contracts))


def _judged(contract: Contract, scope: Scope) -> ContractResult:
    graphs = tuple(facts for facts in scope.graphs if fnmatchcase(facts.graph.name, contract.graph))
    narrow = scope.narrowed(graphs)
    empty = None if graphs else _no_graph(contract, scope)
    return ContractResult(contract, tuple(_clause(clause, narrow, empty) for clause in contract.clauses))


def _no_graph(contract: Contract, scope: Scope) -> Judgement:
    """Why there is no graph to judge."""
    names = ", ".join(facts.graph.name for facts in scope.graphs[:5])
    reason = f"no graph is named {contract.graph!r}; there are {names}" if names else "the run has no compiled graph"
    return Judgement(Outcome.UNDECIDED, reason, place=contract.location)


def _clause(clause: Clause, scope: Scope, empty: Judgement | None) -> ClauseResult:
    kind = kind_of(clause.kind)
    if kind is None:
        raise UsageError(f"there is no contract kind {clause.kind!r}")
    found = tuple(kind.judge(clause, scope)) if empty is None or kind.of_run else ()
    if empty is not None and _is_kept_of_nothing(found, kind, scope):
        found = (empty,)
    return ClauseResult(clause, found or (Judgement(Outcome.UNDECIDED, "nothing to judge", place=clause.location),))


def _is_kept_of_nothing(found: Sequence[Judgement], kind: Kind, scope: Scope) -> bool:
    """What has no graph to hold for is not kept; only surroundings of a run need none that fits the pattern."""
    surroundings = kind.of_run and kind.name != "max_graphs" and scope.run.graphs
    return not surroundings and all(judgement.outcome == Outcome.KEPT for judgement in found)
