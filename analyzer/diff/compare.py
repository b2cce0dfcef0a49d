"""Puts a diff together: two runs in, the edit script of their graphs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from analyzer.analyze import analyze
from analyzer.compare.pairing import pair_graphs
from analyzer.diff.breaks import Comparison, comparisons
from analyzer.diff.environment import config_changes, environment_changes
from analyzer.diff.layers.code import code_changes
from analyzer.diff.layers.cost import cost_changes
from analyzer.diff.layers.fx import fx_changes
from analyzer.diff.layers.lowering import lowering_changes
from analyzer.diff.layers.scheduling import scheduling_changes
from analyzer.diff.matching import Matching, match_graphs
from analyzer.diff.records import Change, GraphDiff, RunDiff
from analyzer.facts import GraphFacts
from analyzer.model import CompiledGraph, Run


def diff_runs(old: Run, new: Run, pairs: Mapping[str, str] | None = None) -> RunDiff:
    """Everything that differs between two runs.

    `pairs` are graphs that the caller knows to belong together, old name to new name; the others are found by content.
    """
    found = _pairs(old, new, pairs or {})
    facts = [(analyze(one) if one else None, analyze(other) if other else None) for one, other in found]
    compared = list(comparisons(facts))
    both = [(entry.old, entry.new) for entry in compared if entry.old is not None and entry.new is not None]
    return RunDiff(
        old.path,
        new.path,
        tuple(config_changes(both)),
        tuple(environment_changes(old, new, both)),
        tuple(map(_graph_diff, compared)),
    )


def _pairs(old: Run, new: Run, given: Mapping[str, str]) -> Iterator[tuple[CompiledGraph | None, CompiledGraph | None]]:
    by_name = [{graph.label: graph for graph in run.graphs} for run in (old, new)]
    known = {one: other for one, other in given.items() if one in by_name[0] and other in by_name[1]}
    yield from ((by_name[0][one], by_name[1][other]) for one, other in known.items())
    yield from pair_graphs(
        [graph for graph in old.graphs if graph.label not in known],
        [graph for graph in new.graphs if graph.label not in known.values()],
    )


def _graph_diff(compared: Comparison) -> GraphDiff:
    old, new = compared.old, compared.new
    if old is not None and new is not None:
        found = diff_graphs(old, new, compared.nodes)
        return replace(found, changes=(compared.broken, *found.changes)) if compared.broken else found
    return GraphDiff(
        old.graph.label if old else None,
        new.graph.label if new else None,
        before=old.summary if old else None,
        after=new.summary if new else None,
    )


def diff_graphs(
    old: GraphFacts,
    new: GraphFacts,
    nodes: Mapping[str, str] | None = None,
    buffers: Mapping[str, str] | None = None,
) -> GraphDiff:
    """What differs between two graphs, layer by layer; `nodes` and `buffers` are pairs that the caller knows."""
    matching = match_graphs(old, new, nodes, buffers)
    unknown = tuple(_unknown(old, new))
    fx = tuple(fx_changes(matching))
    comparable = old.graph.overwritten == new.graph.overwritten and bool(old.buffers) == bool(new.buffers)
    later = _later_changes(matching, fx) if comparable else ()
    cost = tuple(cost_changes(old, new)) if not unknown else ()
    return GraphDiff(old.graph.label, new.graph.label, (*fx, *later, *cost), old.summary, new.summary, unknown)


def _later_changes(matching: Matching, fx: tuple[Change, ...]) -> tuple[Change, ...]:
    """The layers behind the FX graph; each explains differences of the next ones."""
    lowering = tuple(lowering_changes(matching, fx))
    scheduling = tuple(scheduling_changes(matching))
    earlier = fx + lowering + scheduling
    return (*lowering, *scheduling, *code_changes(matching, earlier))


_Has = Callable[[GraphFacts], bool]
_PARTS: tuple[tuple[str, _Has], ...] = (
    ("post-grad FX graph", lambda facts: bool(facts.nodes)),
    ("buffers", lambda facts: bool(facts.buffers)),
    ("groups", lambda facts: bool(facts.groups)),
    ("output code", lambda facts: facts.graph.code is not None),
)


def _unknown(old: GraphFacts, new: GraphFacts) -> Iterator[str]:
    """What only one side tells, and so could not be compared."""
    if old.graph.overwritten != new.graph.overwritten:
        yield "the dumps are of different subgraphs of control flow: only the FX graphs were compared"
    for what, has in _PARTS:
        if has(old) != has(new):
            yield f"the {'new' if has(old) else 'old'} run does not tell its {what}: not compared"
    doubts = [sum(fact.fate == "unknown" for fact in facts.nodes) for facts in (old, new)]
    if doubts[0] != doubts[1]:
        yield f"fates are unknown for {doubts[0]} nodes of the old and {doubts[1]} of the new graph: not compared"
