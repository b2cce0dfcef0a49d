"""Bytes that kernels read and write, from dependencies, layouts and dtypes.

Counted as torch/_inductor/scheduler.py does (`BaseSchedulerNode.get_read_write_buffers_sizes`): each buffer once per
group, at most its own size, and nothing for a buffer that only this group uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analyzer.analyze.storage import bytes_of
from analyzer.facts import numel
from analyzer.model import Dep, DumpNode, Layout, Size


@dataclass(frozen=True)
class Traffic:
    """`layouts` of all buffers and graph inputs; `removed` are never stored."""

    layouts: Mapping[str, Layout]
    removed: frozenset[str]

    def of(self, groups: Sequence[DumpNode]) -> tuple[int | None, int | None]:
        """Bytes read and bytes written by these groups together, each None as soon as one size is not a number."""
        return _total(self._read(g) for g in groups), _total(self._written(g) for g in groups)

    def _read(self, group: DumpNode) -> int | None:
        own = {buffer.name for leaf in group.leaves() for buffer in leaf.buffers}
        return self._sizes((dep for leaf in group.leaves() for dep in leaf.reads if dep.kind != "WeakDep"), own)

    def _written(self, group: DumpNode) -> int | None:
        if group.node_class == "ExternKernelSchedulerNode":
            names = [buffer.name for buffer in group.buffers]
            return _total(self._whole(name) for name in names if name not in self.removed)
        return self._sizes((dep for leaf in group.leaves() for dep in leaf.writes), self.removed)

    def _sizes(self, deps: Iterable[Dep], left_out: Iterable[str]) -> int | None:
        """Each buffer once, with its largest access."""
        excluded = set(left_out) | self.removed
        by_buffer: dict[str, list[Dep]] = {}
        for dep in deps:
            if dep.buffer not in excluded:
                by_buffer.setdefault(dep.buffer, []).append(dep)
        return _total(self._accessed(name, accesses) for name, accesses in by_buffer.items())

    def _accessed(self, name: str, accesses: Sequence[Dep]) -> int | None:
        whole = self._whole(name)
        layout = self.layouts.get(name)
        if layout is None or whole is None or any(dep.kind != "MemoryDep" for dep in accesses):
            return whole
        touched = [bytes_of(layout.dtype, numel(tuple(size for _, size in dep.ranges))) for dep in accesses]
        return whole if None in touched else min(whole, max(size for size in touched if size is not None))

    def _whole(self, name: str) -> int | None:
        layout = self.layouts.get(name)
        if layout is None or layout.kind in ("NoneLayout", "MultiOutputLayout"):
            return 0 if layout is not None else None
        return storage_bytes(layout)


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


def _total(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
