"""What the analyzer concludes about one compiled graph: the facts that reports, diffs and audits speak of.

`analyzer.analyze.analyze(graph)` makes a `GraphFacts` out of a `CompiledGraph`; nothing else creates these records.
Every attribution names its evidence; what is not known is None (or UNKNOWN) and `reason` says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.model import CompiledGraph, DumpNode, FxNode, Layout, Size, SourceSite, StrEnum


class Fate(StrEnum):
    """What lowering did with a post-grad FX node."""

    REALIZED = "realized"
    INLINED = "inlined"
    VIEW = "view"
    INPUT = "input"
    CONSTANT = "constant"
    FOLDED = "folded"
    UNKNOWN = "unknown"


class Storage(StrEnum):
    """What scheduling and code generation did with a buffer."""

    ALLOCATED = "allocated"
    REUSED = "reused"
    REMOVED = "removed"
    OUTPUT = "output"
    ALIAS = "alias"
    NONE = "none"
    UNKNOWN = "unknown"


class Evidence(StrEnum):
    """Where an attribution comes from, best first."""

    CAPTURE = "capture"
    PROVENANCE = "provenance"
    COMMENT = "comment"
    ALIGNMENT = "alignment"
    NAME = "name"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class NodeFact:
    """The fate of one post-grad FX node.

    `buffer` holds its value (None when nothing does); `inlined_into` are all buffers in whose loop bodies it is
    computed without being their value: more than one means that it is recomputed. `source_ops` are pre-grad names,
    `traced_line` is where they are in the program.
    """

    node: FxNode
    fate: Fate
    buffer: str | None = None
    inlined_into: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    source_ops: tuple[str, ...] = ()
    traced_line: SourceSite | None = None
    evidence: Evidence = Evidence.NONE
    reason: str | None = None

    @property
    def name(self) -> str:
        """The FX node's name."""
        return self.node.name

    @property
    def source(self) -> SourceSite | None:
        """The line of the program that it comes from: its own, else that of its pre-grad op."""
        return self.node.source or self.traced_line

    @property
    def places(self) -> tuple[str, ...]:
        """The buffers in whose bodies it is computed, its own first."""
        return (*((self.buffer,) if self.buffer else ()), *self.inlined_into)

    @property
    def recomputed(self) -> bool:
        """Whether it is computed in several bodies."""
        return len(self.places) > 1


@dataclass(frozen=True, slots=True)
class BufferFact:
    """A buffer of the IR: whose value it holds, who reads it, where it lives.

    `origins` are all FX nodes computed in its body, `users` the ops that read it (`OUTPUT` for the graph's result),
    `bytes` its size in memory (None for symbolic sizes), `rule` what made lowering realize it (capture only).
    """

    name: str
    operation: str
    ir_class: str
    layout: Layout | None = None
    bytes: int | None = None
    fx_node: str | None = None
    origins: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    storage: Storage = Storage.UNKNOWN
    shares_memory_with: str | None = None
    group: str | None = None
    kernel: str | None = None
    evidence: Evidence = Evidence.NONE
    reason: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class GroupFact:
    """A top-level node of the post-fusion dump. `members` are its leaf ops, `kernel` the name of what computes it."""

    name: str
    node_class: str
    members: tuple[str, ...]
    buffers: tuple[str, ...] = ()
    kernel: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class KernelFact:
    """A generated kernel or an extern call target, over all its calls in this graph.

    `handles` are provenance debug handles; `backend` is cpp, triton, extern, fallback, template or other;
    `loop_nests` counts outermost loops of a C++ body; bytes are summed over its calls, None where a size is symbolic.
    """

    name: str
    backend: str
    handles: tuple[int, ...] = ()
    calls: int = 0
    groups: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    fx_nodes: tuple[str, ...] = ()
    source_ops: tuple[str, ...] = ()
    loop_nests: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    evidence: Evidence = Evidence.NONE

    @property
    def bytes_moved(self) -> int | None:
        """Read and written together."""
        return known_sum((self.bytes_read, self.bytes_written))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two evidence sources that disagree about one subject; the better one was believed."""

    subject: str
    believed: Evidence
    said: str
    other: Evidence
    other_said: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one graph. None: not known, because the artifact is missing or a size is symbolic."""

    fx_nodes: int | None = None
    realized: int | None = None
    inlined: int | None = None
    recomputed: int | None = None
    views: int | None = None
    folded: int | None = None
    unknown: int | None = None
    scheduler_nodes: int | None = None
    groups: int | None = None
    kernels: int | None = None
    kernel_calls: int | None = None
    loop_nests: int | None = None
    removed_buffers: int | None = None
    allocated_bytes: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None

    @property
    def bytes_moved(self) -> int | None:
        """What kernels read and write together."""
        return known_sum((self.bytes_read, self.bytes_written))


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Everything known about one compiled graph, each list in the order of its artifact."""

    graph: CompiledGraph
    nodes: tuple[NodeFact, ...] = ()
    buffers: tuple[BufferFact, ...] = ()
    scheduler_nodes: tuple[DumpNode, ...] = ()
    groups: tuple[GroupFact, ...] = ()
    kernels: tuple[KernelFact, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    summary: Summary = Summary()

    def node(self, name: str) -> NodeFact | None:
        """The fact about an FX node."""
        return next((fact for fact in self.nodes if fact.name == name), None)

    def buffer(self, name: str) -> BufferFact | None:
        """The fact about a buffer."""
        return next((fact for fact in self.buffers if fact.name == name), None)

    def computed_by_group(self) -> dict[str, tuple[str, ...]]:
        """For each group the FX nodes that it computes, views left out, in graph order."""
        group_of = {buffer: group.name for group in self.groups for buffer in group.buffers}
        found: dict[str, dict[str, None]] = {group.name: {} for group in self.groups}
        for fact in self.nodes:
            for buffer in (fact.buffer, *fact.inlined_into) if fact.fate is not Fate.VIEW else ():
                if buffer in group_of:
                    found[group_of[buffer]][fact.name] = None
        return {group: tuple(names) for group, names in found.items()}


def known_sum(parts: Iterable[int | None]) -> int | None:
    """The sum; None when a part is not known."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def numel(size: tuple[Size, ...] | None) -> int | None:
    """Elements of a shape; None when it is unknown or symbolic."""
    product = 1
    for dimension in size if size is not None else ("?",):
        if not isinstance(dimension, int):
            return None
        product *= dimension
    return product
