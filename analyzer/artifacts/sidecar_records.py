"""The records of a sidecar (`sidecar.py` reads it): exact facts, what Inductor's own objects said when it was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from analyzer.model import Artifact, Size

RULES: Mapping[str, str] = {
    "output": "it is, or leads to, an output of the graph",
    "strides": "a user needs it in a fixed memory layout",
    "reuse_heavy_op": "several users read it, and it contains an op that is expensive on CPU",
    "reuse_large_body": "several users read it, and its loop body is over the op-count limit",
    "reuse_reads": "several users read it, and it reads more than the reuse limit allows",
    "reuse": "several users read it",
    "broadcast": "it is expanded, each element is read many times, and computing it again would cost too much",
    "read_limit": "it has accumulated too many reads, or too large a body, to be inlined further",
    "op_limit": "its loop body has too many ops to be inlined",
    "user_needs_buffer": "several users read it, and one of them can only read a buffer",
    "input_of_extern": "an extern kernel, a template or a mutation reads it",
    "concat_or_mutation": "it is written into a part of another buffer",
    "reduction": "it is a reduction",
    "scan": "it is a scan",
    "sort": "it is a sort",
    "extern": "it is the result of an extern kernel",
    "template": "it is the result of a template",
    "concat": "it is a concatenation",
    "lowering": "the lowering of its op always stores this value",
    "finalize": "it was still unrealized when lowering ended",
    "ablation": "the ablation `inlining` realized it",
    "unknown": "no rule that we know called for it",
}
"""Why a buffer exists, as a clause about the buffer; other rules of newer torch versions are kept verbatim."""


@dataclass(frozen=True, slots=True)
class Realization:
    """The rule that made a buffer. `node`: the FX node being lowered then; `site`: file, line and function of torch.

    `facts` are the rule's own numbers and names, as text: users, reads, ops, threshold, heavy_ops, user.
    """

    rule: str
    node: str | None = None
    site: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def because(self) -> str:
        """The rule as a clause about the buffer."""
        return RULES.get(self.rule, self.rule)


@dataclass(frozen=True, slots=True)
class RecordedBuffer:
    """A buffer when code generation was done. `num_bytes`: of its elements, None for symbolic sizes.

    `storage` is removed, none, output, alias, reused, allocated, or unknown; `shares_with` is the buffer whose memory
    it lives in. `layout` is the class of its layout.
    """

    name: str
    operation: str | None
    ir_class: str
    origin_node: str | None = None
    origins: tuple[str, ...] = ()
    dtype: str | None = None
    size: tuple[Size, ...] | None = None
    stride: tuple[Size, ...] | None = None
    device: str | None = None
    layout: str | None = None
    num_bytes: int | None = None
    mutates: tuple[str, ...] = ()
    extern_kernel: str | None = None
    storage: str = "unknown"
    shares_with: str | None = None
    realized_by: Realization | None = None


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A scheduler node before fusion. `after`: buffers that it only has to follow, without reading them."""

    name: str
    node_class: str
    ir_class: str | None = None
    buffers: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    origin_node: str | None = None
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedGroup:
    """A top-level node after fusion. `kernels`: generated kernels or the extern call that computes it, in order.

    `bytes_accessed` is Inductor's own count (`BaseSchedulerNode.get_read_write_buffers_sizes`).
    """

    name: str
    node_class: str
    members: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    bytes_accessed: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """One definition or reuse of a generated kernel; `params`: parameter → buffers (or a symbol) behind it."""

    name: str
    backend: str
    members: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedExtern:
    """A call of an extern kernel or fallback op by the wrapper."""

    name: str | None
    ir_class: str
    member: str
    buffers: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FusionPair:
    """Two nodes that the scheduler considered for one group, as their members at that time.

    `allowed`: the last answer of `Scheduler.can_fuse`; `fused`: all of them are in one group in the end; `reason` is
    Inductor's own, for the last refusal. A pair that was refused at first may have come together through others.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    allowed: bool
    fused: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Lowering:
    """What GraphLowering.run_node saw of an FX node. Numbers are None where it had no need to count.

    `ir`: classes from the box inwards, `Pointwise` last for a value that stayed unrealized. `hinted`: it was proposed
    for realization, which takes effect only with more than one nontrivial read.
    """

    node: str
    target: str
    users: int | None = None
    ir: tuple[str, ...] = ()
    buffer: str | None = None
    reads: int | None = None
    nontrivial_reads: int | None = None
    ops: int | None = None
    exceeded_max_reads: bool | None = None
    realize_on_reuse: bool | None = None
    hinted: bool | None = None


@dataclass(frozen=True, slots=True)
class PatchedFunction:
    """A function of torch that something else had replaced when the graph was compiled."""

    function: str
    file: str
    line: int | None = None
    code: str | None = None
    by_ablation: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What was in force when the graph was compiled. Settings: full key → source text of the value."""

    settings: Mapping[str, str] = field(default_factory=dict)
    patched: tuple[PatchedFunction, ...] = ()
    choices: str | None = None
    grad_enabled: bool | None = None
    threads: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """One GraphLowering: the graph itself (`name` None), or a subgraph of control flow (`parent` is its parent's name,
    "" for the outermost). `complete` is False, and `failure` says why, when its compile failed.
    """

    name: str | None
    parent: str | None = None
    kind: str = "unknown"
    aot_id: str | None = None
    complete: bool = False
    failure: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    mutated_inputs: tuple[str, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    buffers: tuple[RecordedBuffer, ...] = ()
    removed_buffers: tuple[str, ...] = ()
    scheduler_nodes: tuple[RecordedNode, ...] = ()
    groups: tuple[RecordedGroup, ...] = ()
    kernels: tuple[RecordedKernel, ...] = ()
    extern_calls: tuple[RecordedExtern, ...] = ()
    pairs: tuple[FusionPair, ...] = ()
    pairs_dropped: int = 0
    lowerings: tuple[Lowering, ...] = ()
    mutation_renames: Mapping[str, str] = field(default_factory=dict)
    context: Context | None = None
    vector_isa: str | None = None


@dataclass(frozen=True, slots=True)
class RecorderNote:
    """Something that a recorder could not do."""

    where: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The sidecar of one debug folder: the graph, and its subgraphs if it has control flow."""

    artifact: Artifact
    torch: str | None
    python: str | None
    pid: int | None
    graphs: tuple[RecordedGraph, ...] = ()
    notes: tuple[RecorderNote, ...] = ()

    @property
    def root(self) -> RecordedGraph | None:
        """The outermost graph."""
        return next((graph for graph in self.graphs if graph.name is None), None)

    @property
    def context(self) -> Context | None:
        """What was in force; subgraphs are compiled with their parent."""
        return self.root.context if self.root else None

    def buffers(self) -> Iterator[RecordedBuffer]:
        """The buffers of all graphs; their names are unique in a folder."""
        for graph in self.graphs:
            yield from graph.buffers
