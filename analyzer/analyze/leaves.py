"""The innermost scheduler nodes of a dump, arranged for attribution: what each loads, computes and stores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from analyzer.analyze.body_words import constants_of, root_of, words_of
from analyzer.model import Dep, DumpBuffer, DumpNode, IrDump, LoopBody

_NUMBERED = re.compile(r"buf(\d+)")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One buffer and the scheduler node that makes it.

    `loads` are the buffers and graph inputs whose elements it reads (or adds to); `words` the operations of its body,
    `constants` its numbers, `root` the operation that produces the stored value (all empty without a body); `vague`:
    some of it is computed by a template, whose operations are not printed.
    """

    node: DumpNode
    buffer: DumpBuffer
    loads: frozenset[str]
    words: Counter[str]
    constants: Counter[float]
    root: str | None
    vague: bool = False

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.name

    @property
    def is_extern(self) -> bool:
        """Computed by a library kernel, a fallback op or a template, not by a loop body."""
        return self.node.body is None

    @property
    def is_unfilled(self) -> bool:
        """Memory for elements that nothing computes (torch/_inductor/lowering.py, `empty_strided`)."""
        layout = self.buffer.layout
        nothing = self.node.node_class == "NopKernelSchedulerNode" and "ComputedBuffer" in self.node.inner
        return nothing and layout is not None and layout.size is not None and 0 not in layout.size

    @property
    def computes(self) -> bool:
        """More than a copy: a body that only loads and stores makes no new value."""
        return bool(self.words) or self.vague

    @property
    def is_partial(self) -> bool:
        """A matmul template or packed matmul, whose bias or epilogue a loop body may add afterwards."""
        return any("Template" in inner or inner == "MKLPackedLinear" for inner in self.node.inner)


def buffer_number(name: str) -> int | None:
    """`buf12` → 12: buffers are numbered as lowering makes them. None for other names."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else None


def leaves_of(dump: IrDump) -> tuple[Leaf, ...]:
    """One leaf per buffer, in the order of the dump."""
    nodes = tuple(dump.leaves())
    buffers = [buffer for node in nodes for buffer in node.buffers]
    made = {buffer.name for buffer in buffers}
    writes = {buffer.name: set(buffer.mutations) - made for buffer in buffers if not made.issuperset(buffer.mutations)}
    return tuple(leaf for node in nodes for leaf in _leaves(node, writes))


def _leaves(node: DumpNode, writes: Mapping[str, Collection[str]]) -> Iterator[Leaf]:
    body = node.body
    loads = _after_writes(_loads(body), node, writes) if body else _data_reads(node)
    words = words_of(body) if body else Counter()
    constants = constants_of(body) if body else Counter()
    root = root_of(body) if body else None
    for buffer in node.buffers:
        touched = loads | set(buffer.mutations) if body else loads
        yield Leaf(node, buffer, touched - {buffer.name}, words, constants, root)


def _after_writes(loads: frozenset[str], node: DumpNode, writes: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The loads, an input that has been written into under the name of the buffer that wrote.

    Bodies keep the input's name; dependencies are renamed (torch/_inductor/scheduler.py, `mutation_renames`).
    """
    reads = _data_reads(node)
    renamed = {target: read for read in reads if read in writes for target in writes[read] if target not in reads}
    return frozenset(renamed.get(load, load) for load in loads)


def _loads(body: LoopBody) -> frozenset[str]:
    names = {s.args[0] for s in body.statements() if s.op in ("load", "load_seed") and s.args}
    return frozenset(names)


def _data_reads(node: DumpNode) -> frozenset[str]:
    """Buffers that it reads; ordering edges (WeakDep) carry no data."""
    return frozenset(dep.buffer for dep in node.reads if _carries_data(dep))


def _carries_data(dep: Dep) -> bool:
    return dep.kind != "WeakDep"
