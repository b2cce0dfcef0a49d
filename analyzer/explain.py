"""Everything about one name: its way through the layers in both directions, with reasons and places.

`explain` takes a buffer, op, group, FX node, kernel, pre-grad op, or `FILE:LINE` of the program; `explain_pair` takes
two of them and says why they are, or are not, in one group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import networkx as nx

from analyzer.describe import Describer, Told
from analyzer.errors import UsageError
from analyzer.facts import GraphFacts, GroupFact, KernelFact
from analyzer.graph import Graph, Key, NodeKind, computing, to_networkx
from analyzer.reasons.apart import Apart, Boundaries

_PREFERRED = (
    NodeKind.FX_NODE,
    NodeKind.BUFFER,
    NodeKind.SCHEDULER_NODE,
    NodeKind.GROUP,
    NodeKind.KERNEL,
    NodeKind.PRE_OP,
)
_LINE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")
_HANDLE = re.compile(r"(?P<kernel>.+):\d+")
_NEAR = 5
"""So many names are suggested for an unknown one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node of an explanation. `link` is the kind of the edge to the step before; `next` the steps after it.

    `again`: the same node was told in full elsewhere in this explanation, so that its steps are left out here.
    """

    key: Key
    told: Told
    link: str | None = None
    next: tuple[Step, ...] = ()
    again: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """One name in one graph: what it is, what it came from, what it became, and what its group is kept apart from."""

    graph: str
    subject: Step
    came_from: tuple[Step, ...]
    became: tuple[Step, ...]
    apart: tuple[Apart, ...] = ()


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Two names in one graph, and every pair of groups that they are computed in.

    `together` are the groups that compute both; `apart` the reasons for the other pairs. Both are empty when one of the
    names has no group (an input, a view). `one_function` are kernels that run groups of both without fusing them, as
    the C++ backend packs them.
    """

    graph: str
    first: Step
    second: Step
    first_groups: tuple[str, ...]
    second_groups: tuple[str, ...]
    together: tuple[str, ...]
    apart: tuple[Apart, ...]
    one_function: tuple[str, ...] = ()


def explain(graphs: Sequence[GraphFacts], name: str) -> tuple[Explanation, ...]:
    """One explanation per graph that has the name. UsageError, with names that are near, when none has."""
    found = [_Explainer(facts) for facts in graphs]
    told = tuple(part.explanation(key) for part in found for key in part.resolve(name))
    if not told:
        raise _unknown(name, found)
    return told


def explain_pair(graphs: Sequence[GraphFacts], first: str, second: str) -> tuple[PairExplanation, ...]:
    """One explanation per graph that has both names. UsageError when there is none, or when both are one thing."""
    parts = [_Explainer(facts) for facts in graphs]
    for name in (first, second):
        if not any(part.resolve(name) for part in parts):
            raise _unknown(name, parts)
    both = [part for part in parts if part.resolve(first) and part.resolve(second)]
    if not both:
        raise UsageError(f"{first!r} and {second!r} are in different graphs, which never share a kernel")
    return tuple(part.pair(part.resolve(first)[0], part.resolve(second)[0]) for part in both)


def _unknown(name: str, parts: Sequence[_Explainer]) -> UsageError:
    names = list(dict.fromkeys(label for part in parts for label in part.names()))
    if (line := _LINE.fullmatch(name)) and not any(_LINE.fullmatch(label) for label in names):
        return UsageError(
            f"nothing is known of line {line['line']} of {line['file']}: no artifact of this run names source lines",
            "`inductor-audit report RUN` lists the ops by name",
        )
    near = [label for label in names if name in label] + get_close_matches(name, names, n=_NEAR, cutoff=0.5)
    told = ", ".join(list(dict.fromkeys(near))[:_NEAR])
    hint = f"near names: {told}" if told else "`inductor-audit report RUN` lists the names"
    return UsageError(f"nothing in this run is named {name!r}", hint)


class _Explainer:
    """Explains names of one graph."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts
        self.graph: Graph = to_networkx(facts)
        self.layers = computing(self.graph)
        self.describe = Describer(facts, self.graph)

    # ------------------------------------------------------------------------------------------------------ resolving

    def names(self) -> Iterator[str]:
        """All names, lines as `FILE:LINE` with the file's last part."""
        for kind, name in self.graph:
            yield name.replace("\\", "/").rpartition("/")[2] if kind == NodeKind.SOURCE else name

    def resolve(self, name: str) -> tuple[Key, ...]:
        """The nodes that a name denotes: the earliest kind in order of preference, or a line in every such file."""
        for kind in _PREFERRED:
            if (str(kind), name) in self.graph:
                return ((str(kind), name),)
        if (call := _HANDLE.fullmatch(name)) and (NodeKind.KERNEL, call["kernel"]) in self.graph:
            return ((str(NodeKind.KERNEL), call["kernel"]),)
        line = _LINE.fullmatch(name)
        return tuple(self._lines(line["file"], line["line"])) if line else ()

    def _lines(self, file: str, line: str) -> Iterator[Key]:
        """Source lines whose file ends with these parts of a path."""
        wanted = file.replace("\\", "/").removeprefix("./")
        for kind, name in self.graph:
            path, _, number = name.replace("\\", "/").rpartition(":")
            if kind == NodeKind.SOURCE and number == str(int(line)) and f"/{path}".endswith(f"/{wanted.lstrip('/')}"):
                yield kind, name

    # ----------------------------------------------------------------------------------------------------- explaining

    def explanation(self, key: Key) -> Explanation:
        """The way through the layers, in both directions."""
        mine = self.groups(key) if key[0] in (NodeKind.BUFFER, NodeKind.SCHEDULER_NODE, NodeKind.GROUP) else ()
        apart = Boundaries(self.facts).neighbours(*mine) if mine else ()
        return Explanation(
            self.facts.graph.label,
            Step(key, self.describe(key)),
            self._steps(key, upwards=True, told={key}),
            self._steps(key, upwards=False, told={key}),
            apart,
        )

    def _steps(self, key: Key, upwards: bool, told: set[Key]) -> tuple[Step, ...]:
        """The next layer, each node with what follows it. The depth is that of the layers."""
        edges = self.layers.in_edges(key, keys=True) if upwards else self.layers.out_edges(key, keys=True)
        return tuple(self._step(tail if upwards else head, kind, upwards, told) for tail, head, kind in edges)

    def _step(self, key: Key, link: str, upwards: bool, told: set[Key]) -> Step:
        if key in told:
            return Step(key, self.describe(key), link, again=True)
        told.add(key)
        return Step(key, self.describe(key), link, self._steps(key, upwards, told))

    def groups(self, key: Key) -> tuple[str, ...]:
        """The groups that compute what the key stands for, in execution order; of a kernel those that it runs."""
        reach = nx.ancestors if key[0] == NodeKind.KERNEL else nx.descendants
        reached = {key, *reach(self.layers, key)}
        return tuple(group.name for group in self.facts.groups if (NodeKind.GROUP, group.name) in reached)

    def pair(self, first: Key, second: Key) -> PairExplanation:
        """Whether two things are computed in one group, and if not, why."""
        mine, theirs = self.groups(first), self.groups(second)
        together = tuple(name for name in mine if name in theirs)
        return PairExplanation(
            self.facts.graph.label,
            Step(first, self.describe(first)),
            Step(second, self.describe(second)),
            mine,
            theirs,
            together,
            tuple(self._apart(mine, theirs)),
            tuple(kernel.name for kernel in self.facts.kernels if _runs_both(kernel, mine, theirs)),
        )

    def _apart(self, mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Apart]:
        boundaries = Boundaries(self.facts)
        known: dict[str, GroupFact] = {group.name: group for group in self.facts.groups}
        for one in mine:
            for other in theirs:
                if one != other:
                    yield boundaries.between(known[one], known[other])


def _runs_both(kernel: KernelFact, mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Several calls of a library function are no common function."""
    groups = set(kernel.groups)
    return kernel.calls == 1 and bool(groups & set(mine)) and bool(groups & set(theirs))
