"""Bytes that groups read and write, from dependencies, layouts and dtypes.

Counted as torch/_inductor/scheduler.py does (`BaseSchedulerNode.get_read_write_buffer_accesses`): worst-case inputs,
best-case optimization. Each buffer counts once per group, at most with all its elements, and one that the group both
reads and writes counts as written. A fused group pays nothing for a buffer that only its own members use. Inductor
counts neither frozen parameters and constants nor the padding between strides, and books the results of a library
call with several of them on the call itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from analyzer.analyze.storage import bytes_of
from analyzer.facts import known_sum, numel
from analyzer.model import DumpBuffer, DumpNode, Layout, Size

_ALONE = frozenset({"SchedulerNode", "ExternKernelSchedulerNode", "NopKernelSchedulerNode", "GroupedSchedulerNode"})
"""Node classes that do not derive from FusedSchedulerNode."""


@dataclass(frozen=True)
class Traffic:
    """`layouts` of all buffers and graph inputs, `leaves` of the dump, names of `constants`, which count nothing."""

    layouts: Mapping[str, Layout]
    leaves: Sequence[DumpNode]
    constants: Collection[str] = field(default=frozenset())

    def of(self, groups: Iterable[DumpNode]) -> tuple[int | None, int | None]:
        """Bytes read and bytes written by these groups together, each None as soon as one size is not a number."""
        counted = [self._of_group(group) for group in groups]
        return known_sum(read for read, _ in counted), known_sum(written for _, written in counted)

    def _of_group(self, group: DumpNode) -> tuple[int | None, int | None]:
        if group.node_class == "NopKernelSchedulerNode" or "MultiOutput" in group.inner:
            return 0, 0
        inside = self.kept_inside(group)
        written = {dep.buffer for dep in group.writes} - inside
        read = {dep.buffer for dep in group.reads} - inside - written
        limit = _Limit.of(group)
        return known_sum(self._bytes(name, limit) for name in read), known_sum(
            self._bytes(name, limit) for name in written
        )

    @staticmethod
    def kept_inside(group: DumpNode) -> frozenset[str]:
        """Buffers of a fused group that nobody but its members uses."""
        if group.node_class in _ALONE:
            return frozenset()
        members = {member.name for member in group.members}
        written = {dep.buffer for dep in group.writes}
        buffers = [buffer for leaf in group.leaves() for buffer in leaf.buffers if buffer.name in written]
        return frozenset(b.name for b in buffers if all(user.name in members for user in b.users))

    @cached_property
    def _buffers(self) -> Mapping[str, DumpBuffer]:
        return {buffer.name: buffer for leaf in self.leaves for buffer in leaf.buffers}

    @cached_property
    def _nodes(self) -> Mapping[str, DumpNode]:
        return {leaf.name: leaf for leaf in self.leaves}

    def _bytes(self, name: str, limit: _Limit) -> int | None:
        """What a group may touch of a buffer."""
        layout = self.layouts.get(name)
        if name in self.constants:
            return 0
        if layout is None:
            return None
        if layout.kind == "MultiOutputLayout":
            return self._of_results(name, limit)
        if layout.kind == "NoneLayout":
            mutated = self._buffers[name].mutations if name in self._buffers else ()
            return known_sum(self._bytes(target, limit) for target in mutated if target != name)
        return bytes_of(layout.dtype, limit.touched(name, numel(layout.size)))

    def _of_results(self, call: str, limit: _Limit) -> int | None:
        """The results of a library call are buffers of their own, made by MultiOutput nodes."""
        buffer = self._buffers.get(call)
        readers = [user.name for user in buffer.users if user.node_class != "OUTPUT"] if buffer else []
        takers = [self._nodes[name] for name in readers if name in self._nodes]
        if any("MultiOutput" not in taker.inner for taker in takers):
            return 0
        names = [result.name for taker in takers for result in taker.buffers if result.name != call]
        return known_sum(self._bytes(name, limit) for name in names)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A loop touches at most as many elements of a buffer as it has iterations, once per dependency on it.

    `iterations` is None where there is no limit, or where a range is symbolic and it is not known (`known`).
    """

    iterations: int | None
    known: bool
    times: Mapping[str, int]

    @staticmethod
    def of(group: DumpNode) -> _Limit:
        """Only for a single loop; Inductor sets none for fused groups and library calls."""
        if group.node_class != "SchedulerNode" or group.body is None:
            return _Limit(None, True, {})
        iterations = numel(tuple(extent for _, extent in group.body.ranges))
        times = Counter(dep.buffer for dep in dict.fromkeys((*group.reads, *group.writes)))
        return _Limit(iterations, iterations is not None, times)

    def touched(self, name: str, elements: int | None) -> int | None:
        """Of a buffer with so many elements."""
        if not self.known or elements is None:
            return None
        return elements if self.iterations is None else min(elements, self.iterations * self.times.get(name, 1))


def storage_bytes(layout: Layout) -> int | None:
    """Memory that a layout spans, strides included: a broadcast dimension takes none, padding some."""
    if layout.size is None:
        return None
    if layout.stride is None or len(layout.stride) != len(layout.size):
        return bytes_of(layout.dtype, numel(layout.size))
    return bytes_of(layout.dtype, _span(layout.size, layout.stride))


def _span(size: tuple[Size, ...], stride: tuple[Size, ...]) -> int | None:
    last = 0
    for extent, step in zip(size, stride, strict=True):
        if not isinstance(extent, int) or not isinstance(step, int):
            return None
        if extent == 0:
            return 0
        last += (extent - 1) * step
    return last + 1
