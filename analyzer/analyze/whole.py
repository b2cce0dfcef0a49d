"""Puts the parts together: one compiled graph in, all its facts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from analyzer.analyze.bodies import Bodies, BodyFinder
from analyzer.analyze.dead import GONE, DeadBuffer, DeadFinder
from analyzer.analyze.fates import Fates
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.kernels import Kernels, handled
from analyzer.analyze.launches import Launch, launches
from analyzer.analyze.leaves import Leaf, leaves_of
from analyzer.analyze.owners import Owners, find_owners
from analyzer.analyze.recorded import Recorded, recorded
from analyzer.analyze.storage import Home, Memory
from analyzer.analyze.summary import summarize
from analyzer.analyze.traffic import Traffic, storage_bytes
from analyzer.facts import BufferFact, Evidence, GraphFacts, GroupFact, KernelFact, NodeFact, Storage
from analyzer.model import Allocation, CompiledGraph, DumpBuffer, DumpNode, IrDump, Layout, OutputCode, SourceComment
from analyzer.version import at_least

if TYPE_CHECKING:
    from analyzer.artifacts.sidecar_records import RecordedBuffer


def analyze(graph: CompiledGraph) -> GraphFacts:
    """All facts about one graph. Missing artifacts leave gaps with reasons; nothing is raised."""
    return _Analysis(graph).facts()


def traffic_of(graph: CompiledGraph) -> Traffic:
    """What is needed to count the bytes of single groups or nodes of this graph."""
    return _Analysis(graph).traffic


@dataclass(frozen=True)
class _Analysis:
    graph: CompiledGraph

    # ------------------------------------------------------------------------------------------------ arranged records

    @cached_property
    def fx(self) -> FxIndex:
        graph = self.graph.fx or self.graph.readable
        return FxIndex(graph.nodes, graph.outputs) if graph is not None else FxIndex((), ())

    @cached_property
    def dump(self) -> IrDump | None:
        """Where bodies come from: the dump before fusion, whose loops are as lowering made them."""
        return next((d for d in (self.graph.pre, self.graph.post) if d is not None and d.nodes), None)

    @cached_property
    def leaves(self) -> Mapping[str, Leaf]:
        return {leaf.name: leaf for leaf in leaves_of(self.dump)} if self.dump else {}

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        found = launches(self.graph.post, self.graph.code) if self.graph.post else ()
        known = self.recorded.kernel_of if self.recorded else {}
        return tuple(
            launch if launch.is_silent else replace(launch, kernel=known.get(launch.group.name, launch.kernel))
            for launch in found
        )

    @cached_property
    def launch_of(self) -> Mapping[str, Launch]:
        """For each buffer the launch that computes it."""
        return {b.name: launch for launch in self.launches for leaf in launch.group.leaves() for b in leaf.buffers}

    @cached_property
    def kernel_of(self) -> Mapping[str, str]:
        """For each buffer the kernel that computes it; a result of a call with several launches nothing itself."""
        found = {name: launch.kernel for name, launch in self.launch_of.items() if launch.kernel}
        for leaf in self.leaves.values():
            calls = [found[load] for load in leaf.loads if load in found]
            if leaf.name not in found and "MultiOutput" in leaf.node.inner and len(calls) == 1:
                found[leaf.name] = calls[0]
        return found

    @cached_property
    def source_ops(self) -> Mapping[str, tuple[str, ...]]:
        """Pre-grad names by FX node: as provenance says, else as kernel comments say."""
        if self.graph.provenance is not None and self.graph.provenance.post_to_pre:
            return self.graph.provenance.post_to_pre
        found: dict[str, tuple[str, ...]] = {}
        for comment in comments(self.graph.code):
            for source, nodes in comment.node_map:
                for node in nodes:
                    found[node] = tuple(dict.fromkeys((*found.get(node, ()), source)))
        return found

    # ---------------------------------------------------------------------------------------------------- attribution

    @cached_property
    def computed(self) -> Mapping[str, frozenset[str]]:
        """For each buffer of a loop body the FX nodes that provenance gives to its kernel's calls."""
        known = {}
        for name, launch in self.launch_of.items():
            handles = [call.handle for call in launch.calls]
            nodes = handled(self.graph.provenance, launch.kernel or "", handles) if launch.calls else ()
            if nodes and name in self.leaves and not self.leaves[name].is_extern:
                known[name] = frozenset(nodes) & self.fx.nodes.keys()
        return known

    @cached_property
    def alone(self) -> frozenset[str]:
        """Buffers that are all that their kernel's call computes."""
        shared = Counter(call for launch in self.launches for call in launch.calls for _ in launch.group.leaves())
        return frozenset(n for n, launch in self.launch_of.items() if all(shared[c] == 1 for c in launch.calls))

    @cached_property
    def recorded(self) -> Recorded | None:
        return recorded(self.graph.sidecar)

    @cached_property
    def owners(self) -> Owners:
        """From the sidecar; alignment adds which node a library call is, and what was made where others write."""
        aligned = self._aligned_owners()
        if self.recorded is None:
            return aligned
        exact = self.recorded.owners()
        here = {name: node for name, node in exact.node.items() if node in self.fx.nodes}  # others are in a subgraph
        return replace(exact, node=here, implements=aligned.implements, made=aligned.made)

    def _aligned_owners(self) -> Owners:
        return find_owners(self.graph, self.fx, self.leaves, self.launches, self.computed)

    @cached_property
    def with_views(self) -> bool:
        """Whether this torch counts views among origins."""
        version = self.graph.runnable.torch_version if self.graph.runnable else None
        return version is None or at_least(version, (2, 9))

    @cached_property
    def finder(self) -> BodyFinder:
        known = {buffer: node for buffer, node in self.owners.node.items() if node in self.fx.nodes}
        return BodyFinder(self.fx, self.leaves, replace(self.owners, node=known), self.computed, self.alone)

    @cached_property
    def bodies(self) -> Bodies:
        return self.finder.find(with_views=self.with_views)

    # ---------------------------------------------------------------------------------------------------------- facts

    def facts(self) -> GraphFacts:
        buffers = (*(self._buffer(leaf) for leaf in self.leaves.values()), *self._dead_buffers())
        by_name = {buffer.name: buffer for buffer in buffers}
        nodes = self._nodes()
        groups = tuple(self._group(launch) for launch in self.launches)
        kernels = self._kernels(by_name)
        facts = GraphFacts(self.graph, nodes, buffers, self.graph.pre.nodes if self.graph.pre else (), groups, kernels)
        return replace(facts, summary=summarize(facts))

    def _buffer(self, leaf: Leaf) -> BufferFact:
        name, launch = leaf.name, self.launch_of.get(leaf.name)
        home = self._home(leaf)
        owner = self.owners.node.get(name)
        recorded = self.recorded.buffers.get(name) if self.recorded else None
        return BufferFact(
            name=name,
            operation=leaf.node.name,
            ir_class=leaf.buffer.ir_class,
            layout=leaf.buffer.layout,
            bytes=storage_bytes(leaf.buffer.layout) if leaf.buffer.layout else None,
            fx_node=owner,
            origins=recorded.origins if recorded else self.bodies.origins(name, self.fx),
            users=tuple(user.name for user in leaf.buffer.users),
            storage=home.storage,
            shares_memory_with=home.shares_with,
            group=launch.group.name if launch else None,
            kernel=self.kernel_of.get(name),
            evidence=self.owners.evidence.get(name, self._helper_evidence(name)),
            reason=self.owners.reasons.get(name) if owner is None else home.reason,
            rule=recorded.realized_by.because if recorded and recorded.realized_by else None,
        )

    def _dead_buffers(self) -> Iterator[BufferFact]:
        """Buffers that lowering made and dead-code elimination dropped before the dump."""
        if self.recorded is None:
            yield from (self._proven(dead) for dead in self._missing_buffers())
            return
        for name, buffer in self.recorded.buffers.items():
            if name not in self.leaves:
                yield _recorded_only(buffer)

    def _missing_buffers(self) -> tuple[DeadBuffer, ...]:
        """Only of whole dumps: elsewhere a number may be missing for any reason."""
        if self._lost() is not None or not self.leaves:
            return ()
        steps = self.graph.code.steps if self.graph.code else ()
        mentioned = {step.buffer for step in steps if isinstance(step, Allocation)}
        return DeadFinder(self.fx, self.leaves, self.owners, self.bodies.nodes, mentioned).find()

    def _proven(self, dead: DeadBuffer) -> BufferFact:
        """A fact that rests on the numbering alone."""
        by_twin = self.bodies.origins(dead.twin, self.fx) if dead.twin else ()
        node = dead.node
        return BufferFact(
            name=dead.name,
            operation="",
            ir_class="ComputedBuffer",
            fx_node=node,
            origins=self.finder.origins_of(node, dead.values, with_views=self.with_views) if node else by_twin,
            storage=Storage.REMOVED,
            evidence=Evidence.ALIGNMENT,
            reason=dead.reason,
        )

    def _helper_evidence(self, name: str) -> Evidence:
        """For a buffer that holds no node's value: where what it computes is known from."""
        known = self.bodies.nodes.get(name) or name in self.owners.implements
        ambiguous = (self.owners.reasons.get(name) or "").startswith("ambiguous")
        return Evidence.ALIGNMENT if known and not ambiguous else Evidence.NONE

    @cached_property
    def memory(self) -> Memory | None:
        code = self.graph.code
        return Memory.of(code) if code is not None and code.steps else None

    def _home(self, leaf: Leaf) -> Home:
        home = self.recorded.home(leaf.name) if self.recorded else None
        if home is not None:
            return home
        if self.memory is None:
            return Home(Storage.UNKNOWN, None, "no output code says where it lives")
        return self.memory.home(leaf.buffer)

    def _nodes(self) -> tuple[NodeFact, ...]:
        traced = self.graph.pre_grad.nodes if self.graph.pre_grad else ()
        lines = {node.name: node.source for node in traced if node.source is not None}
        doubts = tuple(n for n in self.leaves if n not in self.owners.node and not self.bodies.nodes.get(n))
        return Fates(
            self.fx, self.owners, self.bodies, self.kernel_of, self.source_ops, doubts, self.leaves, lines, self._lost()
        ).all()

    def _lost(self) -> str | None:
        """Why buffers may be missing; None when a dump was read in full."""
        if self.dump is None and not (self.graph.pre or self.graph.post):
            return "no IR dump: which values got buffers is not known"
        if any(dump.artifact.problems for dump in (self.dump,) if dump is not None):
            return "a part of the IR dump could not be read"
        if self.graph.overwritten:
            return f"the dumps hold only {', '.join(self.graph.overwritten)}: control flow overwrote the rest"
        return None

    def _group(self, launch: Launch) -> GroupFact:
        leaves = tuple(launch.group.leaves())
        buffers = tuple(buffer.name for leaf in leaves for buffer in leaf.buffers)
        members = tuple(leaf.name for leaf in leaves)
        return GroupFact(launch.group.name, launch.group.node_class, members, buffers, launch.kernel, launch.reason)

    def _kernels(self, buffers: Mapping[str, BufferFact]) -> tuple[KernelFact, ...]:
        origins = {name: fact.origins for name, fact in buffers.items()}
        code, provenance = self.graph.code, self.graph.provenance
        exact = self.recorded.kernel_origins if self.recorded else {}
        traffic = self.traffic
        return Kernels(code, provenance, self.launches, origins, buffers, self.source_ops, traffic, exact).all()

    @cached_property
    def traffic(self) -> Traffic:
        constants = {*(self.graph.code.constants if self.graph.code else ()), *self.fx.attributes}
        return Traffic(self._layouts(), tuple(node for node, _ in self._made.values()), constants)

    @cached_property
    def _made(self) -> Mapping[str, tuple[DumpNode, DumpBuffer]]:
        """Each buffer with the node that makes it: all that traffic is counted from, loop bodies need not be read."""
        nodes = self.dump.leaves() if self.dump else ()
        return {buffer.name: (node, buffer) for node in nodes for buffer in node.buffers}

    def _layouts(self) -> Mapping[str, Layout]:
        """Layouts of buffers and graph inputs; the FX graph knows the sizes of inputs that only library calls read."""
        inputs = [node for node in self.fx.nodes.values() if node.op == "placeholder" and node.shape is not None]
        found = {node.name: Layout("placeholder", "", node.device, node.dtype, node.shape) for node in inputs}
        found.update(self.graph.code.input_layouts if self.graph.code else {})
        for name, (node, buffer) in self._made.items():
            found.update(node.layouts)
            if buffer.layout is not None:
                found[name] = buffer.layout
        return found


def comments(code: OutputCode | None) -> Iterator[SourceComment]:
    """Every source comment of the output code, kernels first."""
    if code is not None:
        yield from (kernel.comment for kernel in code.kernels)
        yield from (call.comment for call in code.calls())


def _recorded_only(buffer: RecordedBuffer) -> BufferFact:
    """A fact that rests on the sidecar alone."""
    removed = buffer.storage == Storage.REMOVED
    return BufferFact(
        name=buffer.name,
        operation=buffer.operation or "",
        ir_class=buffer.ir_class,
        bytes=buffer.num_bytes,
        fx_node=buffer.origin_node,
        origins=buffer.origins,
        storage=Storage(buffer.storage) if buffer.storage in list(Storage) else Storage.UNKNOWN,
        evidence=Evidence.CAPTURE,
        reason=GONE if removed else "not in the dump",
    )
