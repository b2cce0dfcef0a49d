"""The records that every part of the analyzer shares: what the artifacts of one Inductor run say, as frozen facts.

Ids are Inductor's own, verbatim: `buf0`, `op3`, `op11_op12`, `model__0_forward_1.0`. Class names of torch
(`FusedSchedulerNode`, `ComputedBuffer`, ...) are open sets and stay text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analyzer.artifacts.deviceless import Deviceless
    from analyzer.artifacts.manifest import Manifest
    from analyzer.artifacts.ptx import PtxEstimates
    from analyzer.artifacts.sidecar import Sidecar
    from analyzer.artifacts.trace_log import TraceGraph, TraceLog

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """The standard library's StrEnum, for Python 3.10."""

        __str__ = str.__str__


Size = int | str
"""One dimension, stride or numel: an int, or the text of a symbolic expression such as `s33*s77`."""


# ------------------------------------------------------------------------------------------------ places and states


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in an artifact; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A stretch of an artifact that could not be read: where it starts, what was expected, how many lines are lost."""

    location: Location
    message: str
    excerpt: str = ""
    lines: int = 1


class ArtifactState(StrEnum):
    """How much of an artifact was understood."""

    PARSED = "parsed"
    PARTIAL = "partial"
    MISSING = "missing"
    EMPTY = "empty"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Artifact:
    """What was read of one file. `cause` names why a file is missing, empty or unsupported, where that is known."""

    file: str
    state: ArtifactState
    lines: int = 0
    problems: tuple[Problem, ...] = ()
    cause: str | None = None

    @property
    def unparsed_lines(self) -> int:
        """Lines that belong to no record and are not known filler."""
        return sum(problem.lines for problem in self.problems)


def artifact_of(file: str, text: str, problems: tuple[Problem, ...] = ()) -> Artifact:
    """The state of a file that was read: empty, parsed, or partial when something could not be understood."""
    if not text.strip():
        return Artifact(file, ArtifactState.EMPTY, text.count("\n"))
    state = ArtifactState.PARTIAL if problems else ArtifactState.PARSED
    return Artifact(file, state, len(text.splitlines()), problems)


# ---------------------------------------------------------------------------------------------------------- IR dumps


@dataclass(frozen=True, slots=True)
class Dep:
    """A dependency of a scheduler node (torch/_inductor/dependencies.py). `index` and `ranges` only for MemoryDep."""

    kind: str
    buffer: str
    index: str | None = None
    ranges: tuple[tuple[str, Size], ...] = ()
    mode: str | None = None
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """A buffer's layout (torch/_inductor/ir.py); `text` is verbatim, what it does not state is None."""

    kind: str
    text: str
    device: str | None = None
    dtype: str | None = None
    size: tuple[Size, ...] | None = None
    stride: tuple[Size, ...] | None = None
    offset: Size | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of a loop body: `result = ops.op(args)`.

    Besides the names of `ops.*`, `op` may be `get_index`, `getitem`, `set_indirect`, `masked_subblock` or `return`;
    then `args` are what the line mentions, in order. A literal or a name is its source text, quotes taken off.
    The args of `set_indirect` and `masked_subblock` begin with the full name called (`set_indirect0`), those of
    `getitem` are the tuple and the position; a tuple in `args` is its source text.
    """

    result: str | None
    op: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A function of a loop body: `body`, or a `masked_subblockN`."""

    name: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class LoopBody:
    """The computation of a scheduler node (torch/_inductor/loop_body.py)."""

    ranges: tuple[tuple[str, Size], ...]
    indices: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]

    def statements(self) -> Iterator[Statement]:
        """All statements, those of masked subblocks after those of the body."""
        for block in self.blocks:
            yield from block.statements


@dataclass(frozen=True, slots=True)
class NodeUser:
    """Who reads a buffer; `name` is an op (a buffer up to torch 2.4), or `OUTPUT`."""

    node_class: str
    name: str
    can_inplace: bool = False
    is_weak: bool = False


@dataclass(frozen=True, slots=True)
class DumpBuffer:
    """A buffer in a scheduler node's `outputs` (up to torch 2.4, where node and buffer are one, made from the node)."""

    name: str
    ir_class: str
    layout: Layout | None
    aliases: tuple[str, ...] = ()
    mutations: tuple[str, ...] = ()
    users: tuple[NodeUser, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class DumpNode:
    """A node of an IR dump (torch/_inductor/scheduler.py writes it, `BaseSchedulerNode.debug_str`).

    `inner` are the class names in the header's parentheses; `kernel` only for extern nodes; `members` are the parsed
    `snodes`, `member_names` those that torch 2.0 only names; `extra` keeps attributes that nobody knows, verbatim.
    """

    name: str
    node_class: str
    inner: tuple[str, ...]
    writes: tuple[Dep, ...] = ()
    unmet: tuple[Dep, ...] = ()
    met: tuple[Dep, ...] = ()
    distances: tuple[int | None, int | None] = (None, None)
    buffers: tuple[DumpBuffer, ...] = ()
    kernel: str | None = None
    device: str | None = None
    iteration: str | None = None
    sizes: str | None = None
    layouts: tuple[tuple[str, Layout], ...] = ()
    body: LoopBody | None = None
    members: tuple[DumpNode, ...] = ()
    member_names: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    location: Location | None = None

    def leaves(self) -> Iterator[DumpNode]:
        """The innermost nodes: itself when it has no members."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()

    @property
    def reads(self) -> tuple[Dep, ...]:
        """All dependencies that it reads, met (graph inputs) and unmet (made by other nodes)."""
        return self.met + self.unmet


@dataclass(frozen=True, slots=True)
class IrDump:
    """`ir_pre_fusion.txt` or `ir_post_fusion.txt`; top-level nodes in execution order."""

    artifact: Artifact
    nodes: tuple[DumpNode, ...] = ()

    def leaves(self) -> Iterator[DumpNode]:
        """All innermost nodes, in order."""
        for node in self.nodes:
            yield from node.leaves()


# ---------------------------------------------------------------------------------------------------------- FX graphs


@dataclass(frozen=True, slots=True)
class SourceSite:
    """A line of the user's program."""

    file: str
    line: int
    function: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class FxNode:
    """A node of an FX graph as printed by `print_readable`.

    `op` is placeholder, call_function, get_attr or output; `target` without `torch.ops.` (`aten.cos.default`).
    `args` and `kwargs` are source texts, `inputs` the FX nodes they mention, in order, repeats kept.
    `dtype` is torch's name (`torch.float32`); `shape` and `stride` are None for what is no tensor or not printed.
    `live`: the graph's output needs it, or it has a side effect of its own on an input.
    """

    name: str
    op: str
    target: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    annotation: str | None = None
    dtype: str | None = None
    shape: tuple[Size, ...] | None = None
    stride: tuple[Size, ...] | None = None
    device: str | None = None
    source: SourceSite | None = None
    live: bool = True
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class FxGraph:
    """`fx_graph_readable.py`, `fx_graph_transformed.py`, or the same from a log.

    `outputs` are the returned names in order, nested tuples flattened, None for what is no node. `subgraphs` are the
    branches and bodies of higher-order ops, by attribute name.
    """

    artifact: Artifact
    nodes: tuple[FxNode, ...] = ()
    outputs: tuple[str | None, ...] = ()
    subgraphs: Mapping[str, FxGraph] = field(default_factory=dict)


# -------------------------------------------------------------------------------------------------------- output code


@dataclass(frozen=True, slots=True)
class SourceComment:
    """The comment lines above a kernel or an extern call (torch/_inductor/utils.py, `get_kernel_metadata`).

    `source_nodes` are pre-grad names; `node_map` pairs each with its post-grad nodes; `fragment` are the post-grad
    nodes of `# Graph fragment:` without its PlaceHolders; `placeholders` are those; `returns` are the names of its
    `return` line in order: one per buffer of the kernel's group, an FX node or else a buffer. None: no such line.
    """

    source_nodes: tuple[str, ...] = ()
    original_aten: tuple[str, ...] = ()
    node_map: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fragment: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()
    returns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A parameter of a generated kernel: `in_ptr0`, `in_out_ptr0`, `out_ptr1`, `xnumel`, `ks0`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class KernelDef:
    """A generated kernel; `name` is the left-hand side of its definition.

    `backend`: cpp, triton, template or other. `loop_nests`: outermost loops of a C++ body, None elsewhere.
    `heuristic`: of Triton (`pointwise`, `reduction`, `template`, ...). `vector_uses`: mentions of `at::vec`.
    `local_buffers`: C++ buffers that live only inside. `meta`: what `inductor_meta` says as plain text values.
    """

    name: str
    backend: str
    params: tuple[KernelParam, ...] = ()
    comment: SourceComment = SourceComment()
    loop_nests: int | None = None
    heuristic: str | None = None
    vector_uses: int = 0
    local_buffers: int = 0
    meta: tuple[tuple[str, str], ...] = ()
    source: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call in the wrapper: of a generated kernel, an extern kernel or a fallback op.

    `callee` is the name without handle and without `.run` (`cpp_fused_cos_0`, `extern_kernels.mm`,
    `torch.ops.aten.sort.stable`). `args` are source texts of positional arguments, `buffers` the variable at the
    bottom of each (through `reinterpret_tensor`), "" where there is none. `outputs`: what `out=` or the left-hand
    side names. `mentions`: every tensor variable in any argument, those inside lists and keywords too, once each.
    `kind`: cpp, triton, template, user_triton, extern, fallback, other; subgraph for the entry of a branch or loop
    body, which is no kernel. `scope`: `call`, `partition_0`, `true_graph_0`, ...
    """

    callee: str
    kind: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    buffers: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    handle: int | None = None
    comment: SourceComment = SourceComment()
    scope: str = "call"
    location: Location | None = None
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """`buf0 = empty_strided_cpu((2, 16), (16, 1), torch.float32)`; `via` is the function called."""

    buffer: str
    via: str
    size: tuple[Size, ...] | None = None
    stride: tuple[Size, ...] | None = None
    dtype: str | None = None
    scope: str = "call"
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """A buffer that lives in another one's memory: `buf1 = buf0; del buf0  # reuse`, `# alias`, `buf9 = buf8[0]`.

    `kind`: reuse (memory taken over), alias, view (reinterpret_tensor or plain assignment without a tail), item
    (`index` of a kernel with several results).
    """

    new: str
    old: str
    kind: str
    scope: str = "call"
    location: Location | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """`del buf0`."""

    buffer: str
    scope: str = "call"
    location: Location | None = None


Step = KernelCall | Allocation | Rename | Free


@dataclass(frozen=True, slots=True)
class OutputCode:
    """`output_code.py` (or `.cpp`): kernel definitions, and the wrapper's steps in execution order.

    `language`: python, cpp_wrapper or aoti. `inputs` and `returns` are those of `call`; `returns` holds the variable
    at the bottom of each returned expression, None for what is no buffer. `constants`: frozen parameters and other
    tensors that are module attributes, name → printed description.
    """

    artifact: Artifact
    language: str = "python"
    aot_id: str | None = None
    kernels: tuple[KernelDef, ...] = ()
    steps: tuple[Step, ...] = ()
    inputs: tuple[str, ...] = ()
    input_layouts: Mapping[str, Layout] = field(default_factory=dict)
    returns: tuple[str | None, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 0

    def calls(self) -> Iterator[KernelCall]:
        """The kernel calls alone, in order."""
        return (step for step in self.steps if isinstance(step, KernelCall))


# ------------------------------------------------------------------------------------- configuration, provenance, logs


@dataclass(frozen=True, slots=True)
class RunnableScript:
    """What `fx_graph_runnable.py` says of the compile: settings as (dotted key, source text of the value).

    Keys are full, `torch._inductor.config.realize_reads_threshold`; `environment` are its os.environ lines;
    `config_lines` are the line numbers of the settings.
    """

    artifact: Artifact
    torch_version: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[tuple[str, Layout], ...] = ()
    config_lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """`inductor_provenance_tracking_node_mappings.json`, or the same record of a trace log; all variants.

    `kernel_to_post` keys are as written: `NAME:HANDLE` from torch 2.9, plain names before.
    """

    artifact: Artifact
    pre_to_post: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    post_to_pre: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernel_to_post: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    post_to_kernel: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernel_stacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version: str | None = None


# ----------------------------------------------------------------------------------------------------- a run as a whole


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """One graph that Inductor compiled: a folder `model__0_forward_1.0`, or the same from a log. None: not there.

    `kind` is inference, forward, backward or unknown; `fx` is the post-grad graph (`fx_graph_transformed.py`),
    `readable` the one handed to Inductor (read where there is no `fx`), `pre_grad` the one that Dynamo traced (read
    where it has source lines that `fx` lacks).
    `sidecar` is what our own capture recorded inside the compiler.
    `overwritten` names the subgraphs of control flow whose dumps took the place of their parent's. `process` tells the
    graphs of a launch with several processes apart (`rank 1`, `process 2`), which have equal names; else it is None.
    """

    name: str
    kind: str
    path: str
    artifacts: tuple[Artifact, ...] = ()
    fx: FxGraph | None = None
    readable: FxGraph | None = None
    pre_grad: FxGraph | None = None
    pre: IrDump | None = None
    post: IrDump | None = None
    code: OutputCode | None = None
    runnable: RunnableScript | None = None
    provenance: Provenance | None = None
    sidecar: Sidecar | None = None
    deviceless: Deviceless | None = None
    ptx: PtxEstimates | None = None
    trace: TraceGraph | None = None
    overwritten: tuple[str, ...] = ()
    process: str | None = None

    @property
    def label(self) -> str:
        """A name that no other graph of the run has."""
        return self.name if self.process is None else f"{self.name} ({self.process})"


class CacheState(StrEnum):
    """Whether graphs were compiled in this run or taken from a cache."""

    COLD = "cold"
    WARM = "warm"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Run:
    """One debug run: everything that one RUN argument of the command line denotes.

    `notes` are findings about the run itself in plain sentences: cache hits, sibling runs, graphs that crashed.
    `traces` are the structured trace logs of its processes; `older` the names of `run_*` folders of earlier launches
    beside them, which were left out.
    """

    path: str
    graphs: tuple[CompiledGraph, ...]
    torch_version: str | None = None
    cache_state: CacheState = CacheState.UNKNOWN
    manifest: Manifest | None = None
    notes: tuple[str, ...] = ()
    traces: tuple[TraceLog, ...] = ()
    older: tuple[str, ...] = ()

    @property
    def captured(self) -> bool:
        """Whether our own capture made this run."""
        return self.manifest is not None or any(graph.sidecar is not None for graph in self.graphs)
