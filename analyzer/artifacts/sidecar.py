"""`inductor_audit.json`: what the capture hook recorded inside the compiler, beside each graph's own artifacts.

Written by analyzer/capture/inside; `sidecar_records.py` has the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.artifacts import versioned_json as read
from analyzer.artifacts.sidecar_records import (
    RULES,
    Context,
    FusionPair,
    Lowering,
    PatchedFunction,
    Realization,
    RecordedBuffer,
    RecordedExtern,
    RecordedGraph,
    RecordedGroup,
    RecordedKernel,
    RecordedNode,
    RecorderNote,
    Sidecar,
)
from analyzer.errors import ArtifactError
from analyzer.model import Location, Size, artifact_of

SCHEMA_VERSION = 1

__all__ = [
    "RULES",
    "SCHEMA_VERSION",
    "Context",
    "FusionPair",
    "Lowering",
    "PatchedFunction",
    "Realization",
    "RecordedBuffer",
    "RecordedExtern",
    "RecordedGraph",
    "RecordedGroup",
    "RecordedKernel",
    "RecordedNode",
    "RecorderNote",
    "Sidecar",
    "parse",
]

_NO_TENSOR = frozenset({"NoneLayout", "MultiOutputLayout"})
_EXTERN_OWNED = frozenset({"FallbackKernel", "ExternKernelAlloc", "MultiOutput"})
_CONFIG_MODULES = {
    "config": "torch._inductor.config.",
    "functorch_config": "torch._functorch.config.",
    "dynamo_config": "torch._dynamo.config.",
}


def parse(text: str, source: str) -> Sidecar:
    """The sidecar of a graph. ArtifactError with a position for text that is none; unknown keys are ignored."""
    found = read.document(text, source, SCHEMA_VERSION, "a capture sidecar")
    if not isinstance(found.get("graphs", []), list):
        raise ArtifactError(Location(source, 1), "expected a list of graphs in a capture sidecar")
    return Sidecar(
        artifact=artifact_of(source, text),
        torch=read.text(found.get("torch")),
        python=read.text(found.get("python")),
        pid=read.number(found.get("pid")),
        graphs=tuple(_graph(entry) for entry in read.mappings(found.get("graphs"))),
        notes=tuple(_note(entry) for entry in read.mappings(found.get("notes"))),
    )


def _note(entry: read.Json) -> RecorderNote:
    where, error, message = (read.text(entry.get(key)) or "" for key in ("where", "error", "message"))
    return RecorderNote(where, error, message)


def _graph(entry: read.Json) -> RecordedGraph:
    """The record of one GraphLowering."""
    memory = _Memory.of(entry)
    kernels = tuple(_kernel(item) for item in read.mappings(entry.get("kernels")))
    externs = tuple(_extern(item) for item in read.mappings(entry.get("extern_calls")))
    context = entry.get("context")
    return RecordedGraph(
        name=read.text(entry.get("name")),
        parent=read.text(entry.get("parent")),
        kind=read.text(entry.get("kind")) or "unknown",
        aot_id=read.text(entry.get("aot_id")),
        complete=bool(read.flag(entry.get("complete"))),
        failure=read.text(entry.get("failure")),
        inputs=read.texts(entry.get("inputs")),
        outputs=read.texts(entry.get("outputs")),
        mutated_inputs=read.texts(entry.get("mutated_inputs")),
        constants=read.text_map(entry.get("constants")),
        buffers=tuple(_buffer(item, memory) for item in read.mappings(entry.get("buffers")) if item.get("name")),
        removed_buffers=tuple(sorted(memory.removed)),
        scheduler_nodes=tuple(_node(item) for item in read.mappings(entry.get("scheduler_nodes"))),
        groups=tuple(_groups(entry, kernels, externs)),
        kernels=kernels,
        extern_calls=externs,
        pairs=tuple(_pair(item) for item in read.mappings(entry.get("fusion_pairs"))),
        pairs_dropped=read.number(entry.get("pairs_dropped")) or 0,
        lowerings=tuple(_lowering(item) for item in read.mappings(entry.get("lowerings"))),
        mutation_renames=read.text_map(entry.get("mutation_renames")),
        context=_context(context) if isinstance(context, dict) else None,
        vector_isa=read.text(entry.get("vector_isa")),
    )


# -------------------------------------------------------------------------------------------------- buffers and memory


@dataclass(frozen=True, slots=True)
class _Memory:
    """What wrapper and scheduler did with the buffers of a graph."""

    removed: frozenset[str]
    outputs: frozenset[str]
    allocated: frozenset[str]
    reused: Mapping[str, str]

    @staticmethod
    def of(entry: read.Json) -> _Memory:
        reuses = entry.get("reuses")
        pairs = [read.texts(pair) for pair in reuses] if isinstance(reuses, list) else []
        return _Memory(
            removed=frozenset(read.texts(entry.get("removed_buffers"))),
            outputs=frozenset(read.texts(entry.get("outputs"))),
            allocated=frozenset((*read.texts(entry.get("allocated")), *read.texts(entry.get("pooled")))),
            reused={pair[0]: pair[1] for pair in pairs if len(pair) == 2},
        )

    def storage(self, name: str, layout: str | None, alias_of: str | None, ir_class: str) -> str:
        """Removal is certain; an output may also be an alias or live in reused memory."""
        if name in self.removed:
            return "removed"
        if layout in _NO_TENSOR:
            return "none"
        if name in self.outputs:
            return "output"
        if alias_of is not None:
            return "alias"
        if name in self.reused:
            return "reused"
        return "allocated" if name in self.allocated or ir_class in _EXTERN_OWNED else "unknown"


def _buffer(entry: read.Json, memory: _Memory) -> RecordedBuffer:
    name, ir_class = read.text(entry.get("name")) or "", read.text(entry.get("ir_class")) or ""
    layout, alias_of = read.text(entry.get("layout")), read.text(entry.get("alias_of"))
    birth = entry.get("realized_by")
    return RecordedBuffer(
        name=name,
        operation=read.text(entry.get("operation")),
        ir_class=ir_class,
        origin_node=read.text(entry.get("origin_node")),
        origins=read.texts(entry.get("origins")),
        dtype=read.text(entry.get("dtype")),
        size=_dims(entry.get("size")),
        stride=_dims(entry.get("stride")),
        device=read.text(entry.get("device")),
        layout=layout,
        num_bytes=read.number(entry.get("num_bytes")),
        mutates=read.texts(entry.get("mutates")),
        extern_kernel=read.text(entry.get("extern_kernel")),
        storage=memory.storage(name, layout, alias_of, ir_class),
        shares_with=alias_of if alias_of is not None else memory.reused.get(name),
        realized_by=_realization(birth) if isinstance(birth, dict) else None,
    )


def _dims(value: Any) -> tuple[Size, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(item for item in value if isinstance(item, (int, str)))


def _realization(entry: read.Json) -> Realization:
    facts = {key: _fact(value) for key, value in entry.items() if key not in ("rule", "node", "site")}
    return Realization(
        rule=read.text(entry.get("rule")) or "unknown",
        node=read.text(entry.get("node")),
        site=read.text(entry.get("site")),
        facts={key: value for key, value in facts.items() if value},
    )


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(read.texts(value))
    return "" if value is None else str(value)


# ----------------------------------------------------------------------------------------------- scheduling and kernels


def _node(entry: read.Json) -> RecordedNode:
    return RecordedNode(
        name=read.text(entry.get("name")) or "",
        node_class=read.text(entry.get("class")) or "",
        ir_class=read.text(entry.get("ir_class")),
        buffers=read.texts(entry.get("buffers")),
        reads=read.texts(entry.get("reads")),
        after=read.texts(entry.get("after")),
        writes=read.texts(entry.get("writes")),
        origin_node=read.text(entry.get("origin_node")),
        origins=read.texts(entry.get("origins")),
    )


def _groups(
    entry: read.Json, kernels: tuple[RecordedKernel, ...], externs: tuple[RecordedExtern, ...]
) -> list[RecordedGroup]:
    """Groups, each with the kernels that compute one of its members (a C++ function may serve several groups)."""
    makers: dict[str, list[str]] = {}
    for kernel in kernels:
        for member in kernel.members:
            makers.setdefault(member, []).append(kernel.name)
    for extern in externs:
        makers.setdefault(extern.member, []).append(extern.name or extern.ir_class)
    accessed = read.number_map(entry.get("bytes_accessed"))
    return [_group(item, makers, accessed) for item in read.mappings(entry.get("groups"))]


def _group(entry: read.Json, makers: Mapping[str, list[str]], accessed: Mapping[str, int]) -> RecordedGroup:
    name, members = read.text(entry.get("name")) or "", read.texts(entry.get("members"))
    kernels = dict.fromkeys(kernel for member in members for kernel in makers.get(member, ()))
    return RecordedGroup(name, read.text(entry.get("class")) or "", members, tuple(kernels), accessed.get(name))


def _kernel(entry: read.Json) -> RecordedKernel:
    return RecordedKernel(
        name=read.text(entry.get("name")) or "",
        backend=read.text(entry.get("backend")) or "",
        members=read.texts(entry.get("members")),
        buffers=read.texts(entry.get("buffers")),
        origins=read.texts(entry.get("origins")),
        params={key: read.texts(value) for key, value in read.mapping(entry.get("params")).items()},
    )


def _extern(entry: read.Json) -> RecordedExtern:
    return RecordedExtern(
        name=read.text(entry.get("name")),
        ir_class=read.text(entry.get("ir_class")) or "",
        member=read.text(entry.get("member")) or "",
        buffers=read.texts(entry.get("buffers")),
        origins=read.texts(entry.get("origins")),
    )


def _pair(entry: read.Json) -> FusionPair:
    return FusionPair(
        first=read.texts(entry.get("first")),
        second=read.texts(entry.get("second")),
        allowed=bool(read.flag(entry.get("allowed"))),
        fused=bool(read.flag(entry.get("fused"))),
        reason=read.text(entry.get("reason")),
    )


# ------------------------------------------------------------------------------------------------ lowering and context


def _lowering(entry: read.Json) -> Lowering:
    return Lowering(
        node=read.text(entry.get("node")) or "",
        target=read.text(entry.get("target")) or "",
        users=read.number(entry.get("users")),
        ir=read.texts(entry.get("ir")),
        buffer=read.text(entry.get("buffer")),
        reads=read.number(entry.get("reads")),
        nontrivial_reads=read.number(entry.get("nontrivial_reads")),
        ops=read.number(entry.get("ops")),
        exceeded_max_reads=read.flag(entry.get("exceeded_max_reads")),
        realize_on_reuse=read.flag(entry.get("realize_on_reuse")),
        hinted=read.flag(entry.get("hinted")),
    )


def _context(entry: read.Json) -> Context:
    settings = {
        prefix + key: value
        for name, prefix in _CONFIG_MODULES.items()
        for key, value in read.text_map(entry.get(name)).items()
    }
    patched = read.mapping(entry.get("patched"))
    return Context(
        settings=settings,
        patched=tuple(_patched(name, read.mapping(value)) for name, value in patched.items()),
        choices=read.text(entry.get("choices")),
        grad_enabled=read.flag(entry.get("grad_enabled")),
        threads=read.number(entry.get("threads")),
        environment=read.text_map(entry.get("environment")),
    )


def _patched(function: str, entry: read.Json) -> PatchedFunction:
    return PatchedFunction(
        function=function,
        file=read.text(entry.get("file")) or "",
        line=read.number(entry.get("line")),
        code=read.text(entry.get("code")),
        by_ablation=bool(read.flag(entry.get("by_ablation"))),
    )
