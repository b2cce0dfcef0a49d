"""What each kernel computes: its groups, buffers and FX nodes over all its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.analyze.launches import Launch
from analyzer.analyze.traffic import Traffic
from analyzer.facts import BufferFact, Evidence, KernelFact
from analyzer.model import KernelCall, KernelDef, OutputCode, Provenance


@dataclass(frozen=True)
class Kernels:
    """`origins` maps buffers to FX nodes, `source_ops` FX nodes to pre-grad names, `recorded` kernels to FX nodes."""

    code: OutputCode | None
    provenance: Provenance | None
    launches: Sequence[Launch]
    origins: Mapping[str, tuple[str, ...]]
    buffers: Mapping[str, BufferFact]
    source_ops: Mapping[str, tuple[str, ...]]
    traffic: Traffic
    recorded: Mapping[str, tuple[str, ...]]

    def all(self) -> tuple[KernelFact, ...]:
        """One fact per kernel name, in order of first use."""
        names = dict.fromkeys(launch.kernel for launch in self.launches if launch.kernel)
        called = {call.callee: None for call in self.code.calls() if call.kind != "subgraph"} if self.code else {}
        covered = {call.callee for launch in self.launches for call in launch.calls}
        return tuple(self._fact(name) for name in [*names, *(c for c in called if c not in covered)])

    def _calls(self, name: str) -> list[KernelCall]:
        """Every call of the kernel; an extern group may print its name otherwise than the wrapper does."""
        mine = [call for launch in self.launches if launch.kernel == name for call in launch.calls]
        also = [call for call in self.code.calls() if call.callee == name] if self.code else []
        return list(dict.fromkeys([*mine, *also]))

    def _fact(self, name: str) -> KernelFact:
        groups = [launch for launch in self.launches if launch.kernel == name]
        calls = self._calls(name)
        definition = next((k for k in self.code.kernels if k.name == name), None) if self.code else None
        nodes, evidence = self._nodes(name, groups, calls, definition)
        written = [b.name for launch in groups for leaf in launch.group.leaves() for b in leaf.buffers]
        read, stored = self.traffic.of([launch.group for launch in groups]) if groups else (None, None)
        return KernelFact(
            name=name,
            backend=_backend(calls, definition, groups),
            handles=tuple(call.handle for call in calls if call.handle is not None),
            calls=len(calls),
            groups=tuple(launch.group.name for launch in groups),
            buffers=tuple(written),
            fx_nodes=nodes,
            source_ops=tuple(dict.fromkeys(op for node in nodes for op in self.source_ops.get(node, ()))),
            loop_nests=definition.loop_nests if definition else None,
            bytes_read=read,
            bytes_written=stored,
            evidence=evidence,
        )

    def _nodes(
        self, name: str, groups: Sequence[Launch], calls: Sequence[KernelCall], definition: KernelDef | None
    ) -> tuple[tuple[str, ...], Evidence]:
        """The FX nodes it computes: as recorded, else as provenance or its comment says, else from its bodies."""
        if name in self.recorded:
            return self.recorded[name], Evidence.CAPTURE
        stated = handled(self.provenance, name, [call.handle for call in calls])
        if stated:
            return stated, Evidence.PROVENANCE
        if definition is not None and definition.comment.fragment and len(calls) == 1:
            return definition.comment.fragment, Evidence.COMMENT
        buffers = [b.name for launch in groups for leaf in launch.group.leaves() for b in leaf.buffers]
        found = dict.fromkeys(node for buffer in buffers for node in self.origins.get(buffer, ()))
        sources = [fact.evidence for b in buffers if (fact := self.buffers.get(b)) and fact.evidence != Evidence.NONE]
        return tuple(found), max(sources, key=list(Evidence).index, default=Evidence.NONE)


def handled(provenance: Provenance | None, name: str, handles: Sequence[int | None]) -> tuple[str, ...]:
    """What the provenance record says of a kernel's calls; empty where it has no entry."""
    if provenance is None:
        return ()
    keys = [name if handle is None else f"{name}:{handle}" for handle in handles] or [name]
    table = provenance.kernel_to_post
    found = [node for key in keys for node in table.get(key, table.get(name, ()) if ":" not in key else ())]
    return tuple(dict.fromkeys(found))


def _backend(calls: Sequence[KernelCall], definition: KernelDef | None, groups: Sequence[Launch]) -> str:
    kind = calls[0].kind if calls else (definition.backend if definition else "other")
    if any("Template" in inner for launch in groups for leaf in launch.group.leaves() for inner in leaf.inner):
        return "template"
    if not calls and any(launch.group.node_class == "ExternKernelSchedulerNode" for launch in groups):
        return "extern"
    return {"user_triton": "triton"}.get(kind, kind)
