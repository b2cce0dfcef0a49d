"""Writes a contract file from a good run: what holds now, in words that can be thinned out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.analyze import analyze
from analyzer.contracts.evaluate import check
from analyzer.contracts.placement import placed
from analyzer.contracts.records import Contract, Outcome
from analyzer.contracts.selectors import candidates
from analyzer.contracts.toml_file import parse
from analyzer.errors import UsageError
from analyzer.facts import Fate, GraphFacts
from analyzer.model import Run

FUSED = 12
"""Fused groups per graph that get a contract, those with the most ops first: a long file is read by nobody."""

_HEAD = """\
# Contracts of {path}, as it is now: delete what you do not care about, and give the rest names of your own.
# `inductor-audit check THIS_FILE RUN` checks them.
"""


def contracts_of_run(run: Run, facts: Sequence[GraphFacts] | None = None) -> str:
    """A contract file that this run keeps. UsageError when the run has nothing that could be promised."""
    graphs = list(facts if facts is not None else (analyze(graph) for graph in run.graphs))
    drafts = [*_run_drafts(), *(draft for one in graphs for draft in _graph_drafts(one))]
    kept = [draft for draft in drafts if _holds(draft, run, graphs)]
    if not any("\ngraph = " in draft for draft in kept):
        raise UsageError(f"{run.path}: nothing can be promised of this run", "`inductor-audit doctor RUN` says why")
    return "\n".join([_HEAD.format(path=_comment(run.path)), *kept])


def _holds(draft: str, run: Run, graphs: Sequence[GraphFacts]) -> bool:
    """Only what the check itself finds kept is written, so that the file never starts out broken."""
    contracts: tuple[Contract, ...] = parse(draft, "draft")
    return check(contracts, run, graphs).outcome == Outcome.KEPT


def _run_drafts() -> Iterator[str]:
    yield _draft("every graph is compiled, none comes from a cache", cold_cache="true")
    yield _draft("no graph breaks", no_graph_breaks="true")
    yield _draft("no recompiles", no_recompiles="true")


def _graph_drafts(facts: GraphFacts) -> Iterator[str]:
    name, summary = facts.graph.name, facts.summary
    graph = quoted(name)
    for key, noun, number in (
        ("max_kernel_calls", "kernel calls", summary.kernel_calls),
        ("max_groups", "groups", summary.groups),
    ):
        if number is not None:
            yield _draft(f"{name}: {noun}, at most {number}", graph=graph, **{key: str(number)})
    if summary.bytes_moved is not None:
        yield _draft(f"{name}: memory traffic does not grow", graph=graph, max_bytes=str(summary.bytes_moved))
    for nodes in sorted(_fused(facts), key=len, reverse=True)[:FUSED]:
        words = f"{nodes[0]} to {nodes[-1]}" if len(nodes) > 2 else " and ".join(nodes)
        yield _draft(f"{name}: {words} stay fused", graph=graph, fused=_array(nodes))
    gone = [node.name for node in candidates(facts) if node.fate == Fate.INLINED]
    if gone:
        yield _draft(f"{name}: inlined values stay inlined", graph=graph, never_realized=_array(gone))
    yield _draft(f"{name}: no op is computed twice", graph=graph, not_recomputed='"all"')
    yield _draft(f"{name}: the fate of every op is known", graph=graph, attributed='"all"')


def _fused(facts: GraphFacts) -> Iterator[list[str]]:
    """The ops of each group that computes more than one, without those that other groups compute too."""
    where = [placed(facts, node) for node in candidates(facts)]
    for group in facts.groups:
        names = [item.node.name for item in where if item.groups == (group.name,) and item.unknown is None]
        if len(names) > 1:
            yield names


def _draft(name: str, **keys: str) -> str:
    lines = [f"{key} = {value}" for key, value in keys.items()]
    return "\n".join(["[[contract]]", f"name = {quoted(name)}", *lines, ""])


def _array(names: Sequence[str]) -> str:
    """On one line while it fits, else one name a line."""
    flat = f"[{', '.join(quoted(name) for name in names)}]"
    return flat if len(flat) < 90 else "[\n" + "".join(f"    {quoted(name)},\n" for name in names) + "]"


def quoted(text: str) -> str:
    """A TOML basic string: quotes, backslashes and what cannot be printed are escaped."""
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return f"\\U{ord(letter):08x}" if not 0xD800 <= ord(letter) < 0xE000 else "\ufffd"


def _comment(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
