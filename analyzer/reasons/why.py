"""Why lowering realized a value or inlined it: recorded by our own capture, else inferred from the artifacts.

torch/_inductor/graph.py (`GraphLowering.run_node`) and ir.py (`StorageBox.mark_reuse`, `realize_hint`) decide; a
sidecar holds their answers. Without one the artifacts only show which rules could have been at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analyzer.analyze.targets import is_compute
from analyzer.facts import BufferFact, GraphFacts, NodeFact, numel
from analyzer.model import DumpNode, FxNode

if TYPE_CHECKING:
    from analyzer.artifacts.sidecar import Lowering, Realization, RecordedBuffer, RecordedGraph

CONSISTENT = "consistent with: "
_READS_LIMIT = "torch._inductor.config.realize_reads_threshold"


@dataclass(frozen=True, slots=True)
class Why:
    """A reason. `recorded`: the compiler said so itself; otherwise the artifacts would be consistent with it."""

    text: str
    recorded: bool = False

    def __str__(self) -> str:
        return self.text if self.recorded else CONSISTENT + self.text


NOTHING_FITS = Why("no rule that leaves a trace in these artifacts")


@dataclass(frozen=True)
class Reasons:
    """The reasons of one graph's lowering."""

    facts: GraphFacts

    @cached_property
    def record(self) -> tuple[RecordedGraph, ...]:
        """What our capture recorded of a compile that came to its end; empty without it."""
        sidecar = self.facts.graph.sidecar
        return sidecar.graphs if sidecar is not None and sidecar.root is not None and sidecar.root.complete else ()

    @cached_property
    def leaves(self) -> Mapping[str, DumpNode]:
        """Scheduler nodes by the buffers they make."""
        return {buffer.name: leaf for leaf in leaves_of(self.facts) for buffer in leaf.buffers}

    @cached_property
    def _ops(self) -> Mapping[str, DumpNode]:
        return {leaf.name: leaf for leaf in leaves_of(self.facts)}

    @cached_property
    def _writers(self) -> Mapping[str, str]:
        """For each mutated buffer one that is written into it."""
        buffers = [buffer for leaf in self.leaves.values() for buffer in leaf.buffers]
        return {target: buffer.name for buffer in buffers for target in buffer.mutations}

    @cached_property
    def _recorded_buffers(self) -> Mapping[str, RecordedBuffer]:
        return {buffer.name: buffer for graph in self.record for buffer in graph.buffers}

    @cached_property
    def _lowerings(self) -> Mapping[str, Lowering]:
        return {lowering.node: lowering for graph in self.record for lowering in graph.lowerings}

    @cached_property
    def _nodes(self) -> Mapping[str, FxNode]:
        return {fact.name: fact.node for fact in self.facts.nodes}

    # --------------------------------------------------------------------------------------------------------- realized

    def realized(self, buffer: BufferFact) -> Why:
        """Why the buffer exists."""
        recorded = self._recorded_buffers.get(buffer.name)
        if recorded is not None and recorded.realized_by is not None:
            return Why(_told(recorded.realized_by), recorded=True)
        found = list(self._visible_rules(buffer)) or list(self._last_resorts(buffer))
        return Why(" or ".join(found)) if found else NOTHING_FITS

    def _visible_rules(self, buffer: BufferFact) -> Iterator[str]:
        """Rules of lowering whose conditions the artifacts show to hold."""
        leaf = self.leaves.get(buffer.name)
        if leaf is None:
            return
        if (own := _made_by(leaf)) is not None:
            yield own
            return
        targets = [target for made in leaf.buffers if made.name == buffer.name for target in made.mutations]
        if targets:
            yield f"it is written into {', '.join(targets)}"
        if buffer.name in self._writers:
            yield f"{self._writers[buffer.name]} is written into it"
        if "OUTPUT" in buffer.users:
            yield "it is an output of the graph"
        libraries = [name for name in buffer.users if name in self._ops and _library(self._ops[name]) is not None]
        if libraries:
            yield f"an extern kernel, a template or a concatenation reads it ({', '.join(libraries)})"
        users = self.users(buffer.fx_node) if buffer.fx_node else ()
        if len(users) > 1:
            yield f"{len(users)} users read it ({', '.join(users[:4])}{', ...' if len(users) > 4 else ''})"

    def _last_resorts(self, buffer: BufferFact) -> Iterator[str]:
        """Rules that many inlined values would satisfy too: named only where nothing else fits."""
        if self._is_broadcast(buffer):
            yield "it is expanded, each element is read many times"
        script = self.facts.graph.runnable
        limits = {key: value for key, value in script.config.items() if "realize_" in key} if script is not None else {}
        if limits:
            told = ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in limits.items())
            yield f"the run sets limits of its own ({told})"

    def _is_broadcast(self, buffer: BufferFact) -> bool:
        """Whether a reader's loop has more iterations than the buffer has elements."""
        own = numel(buffer.layout.size) if buffer.layout is not None else None
        bodies = [self._ops[name].body for name in buffer.users if name in self._ops]
        loops = [numel(tuple(extent for _, extent in body.ranges)) for body in bodies if body is not None]
        return own is not None and any(count is not None and count > own for count in loops)

    # ---------------------------------------------------------------------------------------------------------- inlined

    def inlined(self, fact: NodeFact) -> Why:
        """Why the node got no buffer."""
        lowering = self._lowerings.get(fact.name)
        if lowering is not None and lowering.users is not None:
            return Why(self._not_realized(lowering) + self._passed_on(fact, lowering.users), recorded=True)
        users = self.users(fact.name)
        if len(users) <= 1:
            return Why("it has a single user" + self._passed_on(fact, len(users)))
        return Why(f"{len(users)} users read it, but it is cheap enough to compute again for each of them")

    def _passed_on(self, fact: NodeFact, users: int) -> str:
        """How a value with one user gets into several loops."""
        return ", which is itself computed in several loops" if users == 1 and len(self.bodies(fact)) > 1 else ""

    def _not_realized(self, lowering: Lowering) -> str:
        """The rules of run_node with the answers they gave."""
        if lowering.users is not None and lowering.users <= 1:
            return "it has a single user" + self._hint(lowering)
        counts = [
            text
            for text in (
                _count(lowering.reads, "read", self._limit()),
                _count(lowering.ops, "op"),
            )
            if text
        ]
        answer = "it is not worth a buffer" if lowering.realize_on_reuse is False else "no rule realized it"
        size = f" ({', '.join(counts)})" if counts else ""
        return f"{lowering.users} users read it, but Inductor finds that {answer}{size}" + self._hint(lowering)

    def _hint(self, lowering: Lowering) -> str:
        if not lowering.hinted:
            return ""
        reads = "?" if lowering.nontrivial_reads is None else lowering.nontrivial_reads
        return f"; a hint proposed a buffer, which takes more than one nontrivial read (it has {reads})"

    def _limit(self) -> str | None:
        """The limit of reads in force."""
        for graph in self.record:
            if graph.context is not None and _READS_LIMIT in graph.context.settings:
                return graph.context.settings[_READS_LIMIT]
        return None

    def bodies(self, fact: NodeFact) -> tuple[str, ...]:
        """The buffers in whose loops a node is computed besides its own; a library call has no loop.

        All that are known when the dump has no body for any of them.
        """
        loops = tuple(b for b in fact.inlined_into if (leaf := self.leaves.get(b)) is None or leaf.body is not None)
        return loops if loops or fact.buffer is not None else fact.inlined_into

    def users(self, node: str) -> tuple[str, ...]:
        """Live FX nodes that compute something with a node's value, views in between passed through."""
        found: dict[str, None] = {}
        queue, seen = [node], {node}
        while queue:
            for user in self._nodes[name].users if (name := queue.pop(0)) in self._nodes else ():
                reader = self._nodes.get(user)
                if user in seen or reader is None or not reader.live:
                    continue
                seen.add(user)
                if is_compute(reader):
                    found[user] = None
                else:
                    queue.append(user)
        return tuple(found)


def leaves_of(facts: GraphFacts) -> tuple[DumpNode, ...]:
    """The scheduler nodes of a graph: those before fusion, or the leaves of the groups where only those were kept."""
    for dump in (facts.graph.pre, facts.graph.post):
        if dump is not None and dump.nodes:
            return tuple(dump.leaves())
    return ()


def _library(leaf: DumpNode) -> str | None:
    """Nodes that no loop body computes: they own their buffer and can only read buffers."""
    classes = set(leaf.inner)
    if any("Template" in name for name in classes):
        return "it is the result of a template"
    if "ConcatKernel" in classes:
        return "it is a concatenation"
    return "it is the result of an extern kernel" if leaf.node_class == "ExternKernelSchedulerNode" else None


def _made_by(leaf: DumpNode) -> str | None:
    """Kinds of nodes that always own a buffer, as a clause about it."""
    if (library := _library(leaf)) is not None:
        return library
    words = {statement.op for statement in leaf.body.statements()} if leaf.body is not None else set()
    if "load_seed" in words:
        return "it draws random numbers, which are always stored"
    return next((f"it is a {kind}" for kind in ("reduction", "scan", "sort") if kind in words), None)


def _told(rule: Realization) -> str:
    """`several users read it, and ... (2 users, heavy ops exp)`."""
    facts = dict(rule.facts)
    counts = [
        text
        for text in (
            _count(facts.get("users"), "user"),
            _count(facts.get("reads"), "read", facts.get("threshold")),
            _count(facts.get("ops"), "op"),
            f"heavy: {facts['heavy_ops']}" if facts.get("heavy_ops") else None,
            f"for {facts['user']}" if facts.get("user") else None,
            f"for {rule.node}" if rule.rule == "input_of_extern" and rule.node else None,
        )
        if text
    ]
    return f"{rule.because} ({', '.join(counts)})" if counts else rule.because


def _count(number: int | str | None, noun: str, limit: str | None = None) -> str | None:
    if number is None:
        return None
    of_limit = f", limit {limit}" if limit is not None else ""
    return f"{number} {noun}{'' if str(number) == '1' else 's'}{of_limit}"
