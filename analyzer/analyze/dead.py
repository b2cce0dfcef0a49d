"""Buffers that no dump shows: lowering made them, and they were dead before the scheduler wrote its first dump.

Lowering numbers buffers in the order in which it makes them, so a missing number is a buffer that existed. One cause
is known by construction: before a graph input is written to, every value that still reads it gets a buffer
(torch/_inductor/graph.py, `GraphLowering.mark_buffer_mutated`), in graph order, although most of them were inlined into
others long before. Where exactly as many numbers are missing beside the write as there are such values, each has its
own. Another: a reduction with several results makes a buffer for each, one after the other (torch/_inductor/ir.py,
`WelfordReduction.create`), used or not. Whatever does not come out even stays unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf, buffer_number
from analyzer.analyze.owners import Owners
from analyzer.analyze.targets import is_foreach, is_view, mutates
from analyzer.model import FxNode

GONE = "dead before the pre-fusion dump was written"
_MISSING = f"{GONE}: its number is missing in the dump"

_RESULTS = {
    **dict.fromkeys(("reduction:welford_reduce", "reduction:welford_combine"), 3),
    **dict.fromkeys(("reduction:online_softmax_reduce", "sort"), 2),
}
"""Operations with several results, and how many."""


@dataclass(frozen=True, slots=True)
class DeadBuffer:
    """A buffer that must have existed, and why.

    `node` is the FX node whose value it held, computed from `values`. A result that no node takes has none; it is
    computed by the same loop as that of the buffer `twin`.
    """

    name: str
    reason: str
    node: str | None = None
    values: frozenset[str] = frozenset()
    twin: str | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """A buffer that writes into a graph input: its number, the FX node, the input."""

    number: int
    node: str
    target: str


@dataclass
class DeadFinder:
    """Follows lowering through the graph.

    `bodies` are the FX nodes that each buffer's loop computes, `mentioned` the buffers that later artifacts name.
    """

    fx: FxIndex
    leaves: Mapping[str, Leaf]
    owners: Owners
    bodies: Mapping[str, Collection[str]]
    mentioned: Collection[str] = ()
    number_of: dict[str, int] = field(default_factory=dict)
    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def find(self) -> tuple[DeadBuffer, ...]:
        """All that are proven, by number."""
        self.open = set(range(self.last + 1)) - self.numbers
        if not self.open:
            return ()
        for number, node in sorted(self.made.items(), reverse=True):
            self.number_of[self.fx.first_alias(node)] = number
        found = dict(self._unused_results())
        self.open -= found.keys()
        for writes in self._events():
            for number, node in self._settled(writes):
                self.number_of[node] = number
                self.open.remove(number)
                found[number] = self._dead(number, node, writes[0])
        return tuple(found[number] for number in sorted(found))

    def _unused_results(self) -> Iterator[tuple[int, DeadBuffer]]:
        """Missing numbers among those that belong to one operation's results."""
        for leaf in self.leaves.values():
            operation, _, position = (leaf.root or "").rpartition(".")
            number = buffer_number(leaf.name)
            if operation in _RESULTS and number is not None and position.isdecimal():
                first = number - int(position)
                for missing in self.open.intersection(range(first, first + _RESULTS[operation])):
                    reason = f"{_MISSING}; a result of {operation} beside {leaf.name}, which nothing read"
                    yield missing, DeadBuffer(f"buf{missing}", reason, twin=leaf.name)

    def _dead(self, number: int, node: str, write: _Write) -> DeadBuffer:
        cause = f"{write.node} overwrites an input that this value still read"
        reason = f"{_MISSING}, beside buf{write.number}; {cause}, and nothing read the buffer made for that"
        return DeadBuffer(f"buf{number}", reason, self.fx.last_alias(node), self.reads[node])

    # ----------------------------------------------------------------------------------------------------- numbers

    @cached_property
    def made(self) -> Mapping[int, str]:
        """For each number in a dump the FX node that its buffer belongs to, where that is known."""
        known = {**self.owners.implements, **self.owners.node}
        numbers = {number: known.get(name) for name in self.leaves if (number := buffer_number(name)) is not None}
        owned = {number: node for number, node in numbers.items() if node is not None and node in self.fx.nodes}
        return {**owned, **{write.number: write.node for write in self.writes}}

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Those of the buffers that any artifact names."""
        named = (buffer_number(name) for name in (*self.leaves, *self.mentioned))
        return frozenset(number for number in named if number is not None)

    @cached_property
    def last(self) -> int:
        """The highest number."""
        return max(self.numbers, default=-1)

    @cached_property
    def moment(self) -> Mapping[int, int]:
        """For each number the position in the graph that lowering had reached at least when it was given."""
        found, reached = {}, -1
        for number in sorted(self.made):
            node = self.made[number]
            reached = max(reached, self._position(node), self._inlined_until.get(self.fx.first_alias(node), -1))
            found[number] = reached
        return found

    @cached_property
    def _inlined_until(self) -> Mapping[str, int]:
        """For values that have a buffer and were inlined all the same: where that was last, so that they had none."""
        found: dict[str, int] = {}
        for buffer, inside in self.bodies.items():
            for reader in inside if buffer_number(buffer) is not None else ():
                for value in self.fx.value_inputs[reader]:
                    if value in inside:
                        found[value] = max(found.get(value, -1), self.fx.order[reader] + 1)
        return found

    def _position(self, name: str) -> int:
        """Results of one node come into being together."""
        parent = self.fx.parent(self.fx.nodes[name])
        return self.fx.order[parent.name if parent is not None else name]

    # ------------------------------------------------------------------------------------------------------ writes

    def _events(self) -> Iterable[list[_Write]]:
        """Writes into inputs, those of one node together, in order."""
        together: defaultdict[str, list[_Write]] = defaultdict(list)
        for write in sorted(self.writes, key=lambda write: write.number):
            together[write.node].append(write)
        return together.values()

    @cached_property
    def writes(self) -> tuple[_Write, ...]:
        """Only where it is known which node wrote: as many buffers write into the input as nodes do."""
        buffers: defaultdict[str, list[int]] = defaultdict(list)
        for leaf in self.leaves.values():
            number = buffer_number(leaf.name)
            if number is not None and not leaf.is_extern:
                for target in leaf.buffer.mutations:
                    buffers[target].append(number)
        return tuple(
            _Write(number, node, target)
            for target, numbers in buffers.items()
            if len(numbers) == len(self.fx.writers.get(target, ()))
            for number, node in zip(sorted(numbers), self.fx.writers[target], strict=True)
        )

    # -------------------------------------------------------------------------------------------------- assignment

    def _settled(self, writes: Sequence[_Write]) -> Iterator[tuple[int, str]]:
        """The readers of what a write overwrites have the numbers before its own.

        A group of writes that a GPU computes together comes first, and all their readers after it.
        """
        self._advance(self.fx.order[writes[0].node])
        for write in writes:
            readers = self._readers([write])
            yield from self._matched(self._run(range(self._before(write), -1, -1), readers), readers)
        if is_foreach(self.fx.nodes[writes[0].node]) and writes[-1].number - writes[0].number == len(writes) - 1:
            readers = self._readers(writes)
            yield from self._matched(self._run(range(writes[-1].number + 1, self.last + 1), readers), readers)

    def _before(self, write: _Write) -> int:
        """The last number before the write, past that of a copied value, which may get its buffer for this copy."""
        node = self.fx.nodes[write.node]
        copied = self.fx.first_alias(node.inputs[1]) if len(node.inputs) > 1 and not is_foreach(node) else ""
        last = write.number - 1
        return last - 1 if self.number_of.get(copied) == last else last

    def _readers(self, writes: Sequence[_Write]) -> list[str]:
        """The values that read the written inputs, in the order in which they get buffers."""
        found = (name for write in writes for name in self._readers_of(write))
        return list(dict.fromkeys(found))

    def _readers_of(self, write: _Write) -> list[str]:
        until = self.fx.order[write.node]
        names = (name for name, inputs in self.reads.items() if write.target in inputs and self._is_value(name))
        return sorted(
            (n for n in names if self.fx.order[n] < until), key=lambda n: (self._position(n), self.fx.order[n])
        )

    def _is_value(self, name: str) -> bool:
        """A value of its own that a loop computes: neither a view nor several results nor another one's memory."""
        node = self.fx.nodes[name]
        parent = self.fx.parent(node)
        maker = parent or node
        return node.op == "call_function" and not (
            is_view(node) or is_view(maker) or mutates(maker) or self.fx.items(name)
        )

    def _run(self, numbers: Sequence[int], readers: Collection[str]) -> list[int]:
        """Of successive numbers those that are missing or belong to readers, up to the last missing one; ascending."""
        theirs = {self.number_of[name] for name in readers if name in self.number_of}
        run = list(takewhile(lambda number: number in self.open or number in theirs, numbers))
        while run and run[-1] not in self.open:
            run.pop()
        return sorted(run)

    def _matched(self, run: Sequence[int], readers: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The missing numbers of a run and whose they are, if its readers fill it exactly and in order."""
        fitting = [name for name in readers if self.number_of.get(name, run[0]) in run] if run else []
        pairs = list(zip(run, fitting, strict=False))
        if len(run) == len(fitting) and all(self.number_of.get(name, number) == number for number, name in pairs):
            yield from ((number, name) for number, name in pairs if number in self.open)

    # ------------------------------------------------------------------------------------------------------- reads

    def _advance(self, until: int) -> None:
        """What each value reads when it is made: buffers that exist by then, and graph inputs."""
        for name in list(self.fx.nodes)[len(self.reads) : until]:
            self.reads[name] = self._reads(self.fx.nodes[name])

    def _reads(self, node: FxNode) -> frozenset[str]:
        if node.op != "call_function":
            return frozenset({node.name})
        maker = self.fx.parent(node) or node
        if mutates(maker):  # the very input that was written into
            return frozenset({node.name, *(t for t in self.fx.targets(maker) if node.name in self.fx.written(t))})
        seen = (self._seen(source, self.fx.order[node.name]) for source in self.fx.value_inputs[node.name])
        return frozenset[str]().union(*seen)

    def _seen(self, name: str, at: int) -> frozenset[str]:
        """What a node at a position of the graph reads when it reads this one."""
        node = self.fx.nodes[name]
        number = self.number_of.get(name)
        if number is not None and self.moment.get(number, at) <= at:
            return frozenset({name})
        if is_view(node) and node.inputs:
            return self._seen(node.inputs[0], at)
        return self.reads[name]
