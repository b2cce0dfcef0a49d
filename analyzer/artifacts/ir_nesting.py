"""Puts the nodes of an IR dump into each other: the line above a member's header names its owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from analyzer.artifacts.ir_scan import Chunk
from analyzer.model import DumpNode, Location, Problem

UNKNOWN_CLASS = "unknown"
_DEEPEST = 50


@dataclass(slots=True)
class Found:
    """What a chunk of a dump holds: its node, or the problem with it."""

    chunk: Chunk
    place: Location
    node: DumpNode | None = None
    problem: Problem | None = None


@dataclass(slots=True)
class _Open:
    """A node whose members may still follow; `damaged` when some lines of it or of its members could not be read."""

    name: str
    place: Location
    node: DumpNode | None
    chunks: list[Chunk]
    damaged: bool
    members: list[DumpNode] = field(default_factory=list)


def nest(found: Iterable[Found]) -> tuple[tuple[DumpNode, ...], tuple[Problem, ...]]:
    """Top-level nodes in order, and what is wrong with the dump.

    A group whose own lines are lost keeps its members under the class "unknown": they are no groups of their own.
    """
    nesting = _Nesting()
    for item in found:
        nesting.add(item)
    nesting.close(0)
    return tuple(nesting.nodes), tuple(sorted(nesting.problems, key=lambda problem: problem.location))


class _Nesting:
    """The open nodes, outermost first, and what is finished."""

    def __init__(self) -> None:
        self.nodes: list[DumpNode] = []
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._seen: set[str] = set()

    def add(self, item: Found) -> None:
        """Take the next chunk of the dump."""
        chunk = item.chunk
        if item.problem is not None:
            self.problems.append(item.problem)
        if chunk.owner is not None:
            self._reach(chunk.owner, item.place)
        elif chunk.name is not None:
            self.close(0)
        if item.node is None:
            self._damage()
        if chunk.name is not None:
            self._open.append(_Open(chunk.name, item.place, item.node, [chunk] if item.node else [], item.node is None))

    def close(self, depth: int) -> None:
        """Finish all but the outermost `depth` open nodes."""
        while len(self._open) > depth:
            done = self._open.pop()
            node = self._finish(done)
            if self._open:
                self._open[-1].chunks += done.chunks
                self._open[-1].members += [node] if node else []
            elif node:
                self._keep(node, done)

    def _reach(self, owner: str, place: Location) -> None:
        """Make the owner the innermost open node."""
        depths = [depth for depth, node in enumerate(self._open, start=1) if node.name == owner]
        self.close(depths[-1] if depths and depths[-1] < _DEEPEST else 0)
        if not self._open:
            message = f"expected {owner} itself before its members"
            self.problems.append(Problem(place, message, lines=0))
            self._open.append(_Open(owner, place, None, [], damaged=True))

    def _damage(self) -> None:
        for node in self._open:
            node.damaged = True

    def _finish(self, done: _Open) -> DumpNode | None:
        members = tuple(done.members)
        if done.node is None:
            inner = tuple(member.node_class for member in members)
            return DumpNode(done.name, UNKNOWN_CLASS, inner, members=members, location=done.place) if members else None
        expected, count = len(done.node.inner), len(members) or len(done.node.member_names)
        if expected > 1 and expected != count and not done.damaged:
            self.problems.append(
                Problem(done.place, f"expected {expected} members of {done.name}, found {count}", lines=0)
            )
        if not members:
            return done.node
        buffers = done.node.buffers or tuple(buffer for member in members for buffer in member.buffers)
        return replace(done.node, members=members, buffers=buffers)

    def _keep(self, node: DumpNode, done: _Open) -> None:
        """A name twice means that two dumps were joined: the first one stands."""
        names = {node.name, *(leaf.name for leaf in node.leaves())} if node.members else {node.name}
        if self._seen.isdisjoint(names):
            self._seen |= names
            self.nodes.append(node)
            return
        again = min(names & self._seen)
        lines = sum(chunk.lines for chunk in done.chunks)
        self.problems.append(Problem(done.place, f"expected each node once, found {again} again", lines=lines))
