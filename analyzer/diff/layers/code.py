"""What code generation did differently: which calls compute what, kernels' code, and where buffers live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from analyzer.analyze.launches import launches
from analyzer.diff.kernel_text import canonical_kernel, erased, hinted_loops, readable_kernel
from analyzer.diff.layers.fx import both
from analyzer.diff.layers.lowering import Touched, buffer_side
from analyzer.diff.layers.words import home_text
from analyzer.diff.matching import GraphSide, Matching, is_alone
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.diff.regroup import Regrouping, regroupings
from analyzer.facts import BufferFact, Storage
from analyzer.model import KernelCall, KernelDef
from analyzer.words import counted

_LIBRARY = ("extern", "fallback")


def code_changes(matching: Matching, earlier: Iterable[Change]) -> Iterator[Change]:
    """Calls, kernels and storage; `earlier` are the changes of the layers before, which explain different code."""
    yield from _wrapper_changes(matching)
    stored = list(_storage_changes(matching))
    yield from _Kernels(matching, Touched.by(matching, earlier), Touched.by(matching, stored)).changes()
    yield from stored


def _wrapper_changes(matching: Matching) -> Iterator[Change]:
    """The wrapper's language and how many partitions (torch/_inductor/scheduler.py, `graph_partition`) it has."""
    one, other = (side.facts.graph.code for side in (matching.old, matching.new))
    if one is None or other is None:
        return
    for aspect, old, new in (
        ("language", one.language, other.language),
        ("partitions", str(one.partitions), str(other.partitions)),
    ):
        if old != new:
            yield Change(Kind.CHANGED, Layer.CODE, aspect, "wrapper", Side(("call",), old), Side(("call",), new))


# ------------------------------------------------------------------------------------------------------------ storage


def _storage_changes(matching: Matching) -> Iterator[Change]:
    """Where a buffer that both graphs have lives: allocated, fused away, in another's memory."""
    for one, other in matching.pairs():
        if not {Storage.UNKNOWN, Storage.NONE} & {one.storage, other.storage} and not _same_home(matching, one, other):
            sides = buffer_side(matching.old, one, home_text(one)), buffer_side(matching.new, other, home_text(other))
            yield Change(Kind.CHANGED, Layer.CODE, "storage", both(one.ir_class, other.ir_class), *sides)


def _same_home(matching: Matching, one: BufferFact, other: BufferFact) -> bool:
    """In another's memory: that this other one is new or gone is told where it is."""
    pair = one.shares_memory_with, other.shares_memory_with
    if one.storage != other.storage or None in pair:
        return one.storage == other.storage and pair[0] == pair[1]
    naming = matching.naming(matching.old), matching.naming(matching.new)
    names = naming[0](pair[0] or ""), naming[1](pair[1] or "")
    return names[0] == names[1] or any(map(is_alone, names))


# ------------------------------------------------------------------------------------------------------------ kernels


@dataclass(frozen=True)
class _Calls:
    """The calls of one graph's wrapper, each under a key of its own, and which buffers each computes."""

    side: GraphSide

    @cached_property
    def of_buffer(self) -> Mapping[str, str]:
        """For each buffer the key of the first call that computes it."""
        graph = self.side.facts.graph
        found = {}
        for launch in launches(graph.post, graph.code) if graph.post else ():
            for leaf in launch.group.leaves() if launch.calls else ():
                found.update({buffer.name: self._key(launch.calls[0]) for buffer in leaf.buffers})
        return found

    def computed(self, key: str) -> set[str]:
        """The buffers that a call computes; where the graph is only a share of the compiled one, also others'."""
        return {name for name, call in self.of_buffer.items() if call == key}

    @cached_property
    def by_key(self) -> Mapping[str, KernelCall]:
        """Calls by key."""
        code = self.side.facts.graph.code
        return {self._key(call): call for call in (code.calls() if code else ())}

    @staticmethod
    def _key(call: KernelCall) -> str:
        return f"{call.callee} at {call.location}"


@dataclass(frozen=True)
class _Kernels:
    matching: Matching
    earlier: Touched
    stored: Touched

    @cached_property
    def old(self) -> _Calls:
        return _Calls(self.matching.old)

    @cached_property
    def new(self) -> _Calls:
        return _Calls(self.matching.new)

    def changes(self) -> Iterator[Change]:
        """Calls in the old wrapper's order."""
        seen: set[tuple[str, str]] = set()
        for pair in regroupings(self.old.of_buffer, self.new.of_buffer, self.matching.buffers):
            ones = [self.old.by_key[key] for key in pair.old]
            others = [self.new.by_key[key] for key in pair.new]
            if len(ones) == len(others) == 1:
                names = ones[0].callee, others[0].callee
                found = list(self._call_change(pair, ones[0], others[0])) if names not in seen else []
                seen.update(names for _ in found)
                yield from found
            else:
                yield self._regrouped(ones, others)

    def _regrouped(self, ones: list[KernelCall], others: list[KernelCall]) -> Change:
        kind = Kind.SPLIT if len(ones) == 1 else Kind.MERGED if len(others) == 1 else Kind.MOVED
        return Change(kind, Layer.CODE, "kernels", "kernel call", _calls_side(ones), _calls_side(others))

    def _call_change(self, pair: Regrouping, one: KernelCall, other: KernelCall) -> Iterator[Change]:
        if (one.kind in _LIBRARY) != (other.kind in _LIBRARY) or (one.kind in _LIBRARY and one.callee != other.callee):
            yield Change(Kind.CHANGED, Layer.CODE, "callee", "kernel call", _calls_side([one]), _calls_side([other]))
            return
        kernels = self.matching.old.kernels.get(one.callee), self.matching.new.kernels.get(other.callee)
        if kernels[0] is None or kernels[1] is None or self._explained(pair):
            return
        yield from self._kernel_change((one, kernels[0]), (other, kernels[1]), pair)

    def _explained(self, pair: Regrouping) -> bool:
        """Whether something told at an earlier layer happened inside these calls, or a graph was broken inside one."""
        sides = (
            (self.matching.old, self.old, pair.old[0], self.earlier.old),
            (self.matching.new, self.new, pair.new[0], self.earlier.new),
        )
        return any(
            _near(side, calls, key) & touched or not side.buffers.keys() >= calls.computed(key)
            for side, calls, key, touched in sides
        )

    def _kernel_change(
        self, old: tuple[KernelCall, KernelDef], new: tuple[KernelCall, KernelDef], pair: Regrouping
    ) -> Iterator[Change]:
        (one, before), (other, after) = old, new
        bound = (
            _bound(self.matching, self.matching.old, one, before),
            _bound(self.matching, self.matching.new, other, after),
        )
        aspect = _difference(before, after, bound)
        if aspect is None or (aspect == "pointers" and self._moved(pair, bound)):
            return
        side = _hints_side if aspect == "hints" else _kernel_side
        yield Change(Kind.CHANGED, Layer.CODE, aspect, "kernel", side(before), side(after))

    def _moved(self, pair: Regrouping, bound: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
        """Whether other pointers follow from buffers told before: of another home, or that only one graph has."""
        written = self.old.computed(pair.old[0])
        return bool(written & self.stored.old) or any(is_alone(name) for names in bound for name in names.values())


def _difference(one: KernelDef, other: KernelDef, bound: tuple[Mapping[str, str], Mapping[str, str]]) -> str | None:
    """What differs between two kernels: the `body`, or only its `pointers`, or only its `hints`."""
    if one.backend != other.backend:
        return "body"
    if canonical_kernel(one, bound[0]) == canonical_kernel(other, bound[1]):
        return None
    if erased(one) == erased(other):
        return "pointers"
    hintless = canonical_kernel(one, bound[0], hints=False), canonical_kernel(other, bound[1], hints=False)
    return "hints" if hintless[0] == hintless[1] else "body"


def _near(side: GraphSide, calls: _Calls, key: str) -> set[str]:
    """Names of what a call computes and reads: buffers, their groups, FX nodes."""
    found: set[str] = set()
    for name in calls.computed(key) & side.buffers.keys():
        fact, leaf = side.buffers[name], side.leaves.get(name)
        reads = [dep.buffer for dep in leaf.reads] if leaf else []
        found.update((name, fact.group or "", *fact.origins, *reads))
    return found


def _bound(matching: Matching, side: GraphSide, call: KernelCall, kernel: KernelDef) -> Mapping[str, str]:
    """What each parameter of a kernel points to in this call, in words that mean the same in both runs."""
    naming = matching.naming(side)
    pairs = zip(kernel.params, call.buffers, strict=False)
    return {param.name: naming(buffer) for param, buffer in pairs if buffer}


def _calls_side(calls: list[KernelCall]) -> Side:
    names = tuple(call.callee for call in calls)
    return Side(names, ", ".join(names), calls[0].location)


def _hints_side(kernel: KernelDef) -> Side:
    return Side((kernel.name,), f"ivdep on {counted(hinted_loops(kernel), 'loop')}", kernel.location)


def _kernel_side(kernel: KernelDef) -> Side:
    nests = "" if kernel.loop_nests is None else f", {counted(kernel.loop_nests, 'loop nest')}"
    vector = ", vectorized" if kernel.vector_uses else ""
    heuristic = f" {kernel.heuristic}" if kernel.heuristic else ""
    text = f"a {kernel.backend}{heuristic} kernel{nests}{vector}"
    return Side((kernel.name,), text, kernel.location, readable_kernel(kernel))
