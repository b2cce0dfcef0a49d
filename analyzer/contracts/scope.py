"""What a clause is judged on: the run and the facts about the graphs that its contract speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analyzer.contracts.because import Because
from analyzer.contracts.records import Judgement, Outcome, Selector
from analyzer.contracts.selectors import Nodes, candidates, near_names
from analyzer.facts import GraphFacts, NodeFact
from analyzer.model import ArtifactState, Location, Run


@dataclass(frozen=True, slots=True)
class Scope:
    """A run, and the facts about those of its graphs whose names fit the contract's pattern."""

    run: Run
    graphs: tuple[GraphFacts, ...]
    lookup: Mapping[int, Nodes]
    because: Mapping[int, Because]

    @classmethod
    def of(cls, run: Run, graphs: Sequence[GraphFacts]) -> Scope:
        """All graphs of a run."""
        lookup = {id(facts): Nodes(facts) for facts in graphs}
        return cls(run, tuple(graphs), lookup, {id(facts): Because(facts) for facts in graphs})

    def narrowed(self, graphs: Sequence[GraphFacts]) -> Scope:
        """Some of the graphs."""
        return replace(self, graphs=tuple(graphs))

    def selected(self, selector: Selector, facts: GraphFacts) -> tuple[NodeFact, ...]:
        """The nodes that a selector means in one of the graphs."""
        return self.lookup[id(facts)].selected(selector)

    def nodes(self, selector: Selector) -> Iterator[tuple[GraphFacts, NodeFact]]:
        """The nodes that a selector means, with their graph."""
        return ((facts, node) for facts in self.graphs for node in self.selected(selector, facts))

    def why(self, facts: GraphFacts) -> Because:
        """Who knows the reasons of one of the graphs."""
        return self.because[id(facts)]

    def unknown(self, selectors: Sequence[Selector]) -> Iterator[Judgement]:
        """Every selector that means nothing in any of the graphs, at its place in the contract file."""
        for selector in selectors:
            if next(self.nodes(selector), None) is None:
                yield Judgement(Outcome.UNDECIDED, self._why_unknown(selector), place=selector.location)

    def _why_unknown(self, selector: Selector) -> str:
        readable = [facts for facts in self.graphs if any(True for _ in candidates(facts))]
        if not readable:
            return f"no post-grad FX graph could be read, so {selector.text!r} cannot be found"
        near = near_names(selector, readable)
        hint = f"; near: {', '.join(near)}" if near else ""
        return f"nothing is named {selector.text!r} in {_graph_names(readable)}{hint}"


def _graph_names(graphs: Sequence[GraphFacts]) -> str:
    names = [facts.graph.name for facts in graphs]
    return names[0] if len(names) == 1 else f"any of the {len(names)} graphs"


def place_of(node: NodeFact) -> Location | None:
    """The line of the program that a node comes from."""
    source = node.source
    return Location(source.file, source.line) if source is not None else None


def told(facts: GraphFacts, node: NodeFact, outcome: Outcome, reason: str) -> Judgement:
    """A judgement about one node."""
    return Judgement(outcome, reason, facts.graph.name, place_of(node))


def missing(facts: GraphFacts, *files: str) -> str:
    """Why the first of these artifacts that is missing is missing, as a sentence's end; empty when all are there."""
    for artifact in facts.graph.artifacts:
        if artifact.file in files and artifact.state in (ArtifactState.MISSING, ArtifactState.EMPTY):
            cause = f" ({artifact.cause})" if artifact.cause else ""
            return f"{artifact.file} is {artifact.state}{cause}"
    return ""
