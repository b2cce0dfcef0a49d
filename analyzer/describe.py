"""What there is to say about one node of the layered graph, in a sentence, with its reason and its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact, KernelFact, NodeFact, Storage
from analyzer.graph import Graph, Key
from analyzer.model import DumpNode, Layout, Location, SourceSite
from analyzer.reasons.ledger import REMOVED, Entries
from analyzer.reasons.why import Why, leaves_of
from analyzer.words import counted


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence about a node, why it is so, and where an artifact shows it (`also`: further places)."""

    text: str
    why: Why | None = None
    at: Location | None = None
    also: tuple[Location, ...] = ()


class Describer:
    """Describes nodes of one graph; made once, asked often."""

    def __init__(self, facts: GraphFacts, graph: Graph) -> None:
        self._facts = facts
        self._graph = graph
        self._entries = Entries(facts)
        self._leaves: Mapping[str, DumpNode] = {leaf.name: leaf for leaf in leaves_of(facts)}
        self._by_record: tuple[tuple[type, Callable[..., Told]], ...] = (
            (SourceSite, _source),
            (NodeFact, self._fx_node),
            (BufferFact, self._buffer),
            (DumpNode, _scheduler_node),
            (GroupFact, self._group),
            (KernelFact, self._kernel),
        )

    def __call__(self, key: Key) -> Told:
        """What there is to say about a node of the graph."""
        record = self._graph.nodes[key]["record"]
        for kind, tell in self._by_record:
            if isinstance(record, kind):
                return tell(record)
        return Told("")

    def _fx_node(self, fact: NodeFact) -> Told:
        node = fact.node
        typed = _typed(node.dtype, node.shape)
        entry = self._entries.of(fact)
        outcome = entry.told if entry is not None else _fate(fact)
        return Told(f"{node.target}{typed}: {outcome}", entry.why if entry else None, node.location)

    def _buffer(self, buffer: BufferFact) -> Told:
        leaf = self._entries.reasons.leaves.get(buffer.name)
        places = [b.location for b in leaf.buffers if b.name == buffer.name] if leaf is not None else []
        parts = [
            f"{buffer.ir_class}{_laid_out(buffer.layout)}",
            _size(buffer),
            _stored(buffer),
            _holds(buffer),
            _read_by(buffer),
        ]
        return Told(
            "; ".join(part for part in parts if part),
            self._entries.reasons.realized(buffer),
            places[0] if places else None,
        )

    def _group(self, group: GroupFact) -> Told:
        post = self._facts.graph.post
        at = next((node.location for node in post.nodes if node.name == group.name), None) if post else None
        members = f" of {', '.join(group.members)}" if len(group.members) > 1 else ""
        reason = f"; {group.reason}" if group.reason else ""
        return Told(f"{group.node_class}{members}{reason}", None, at)

    def _kernel(self, kernel: KernelFact) -> Told:
        code = self._facts.graph.code
        definition = next((k.location for k in code.kernels if k.name == kernel.name), None) if code else None
        calls = [c.location for c in code.calls() if c.callee == kernel.name and c.location] if code else []
        places = [place for place in (definition, *calls) if place is not None]
        return Told(", ".join(_kernel_words(kernel)), None, places[0] if places else None, tuple(places[1:]))


def _source(site: SourceSite) -> Told:
    where = f"in {site.function}" if site.function else ""
    return Told(": ".join(text for text in (where, site.code) if text))


def _fate(fact: NodeFact) -> str:
    """The fate of what has no entry in the ledger."""
    text = {Fate.INPUT: "graph input", Fate.VIEW: "a view, computes nothing"}.get(fact.fate, str(fact.fate))
    return f"{text} ({fact.reason})" if fact.reason else text


def _typed(dtype: str | None, shape: object) -> str:
    if dtype is None or not isinstance(shape, tuple):
        return ""
    return f" {dtype.removeprefix('torch.')}[{', '.join(str(size) for size in shape)}]"


def _laid_out(layout: Layout | None) -> str:
    if layout is None:
        return ""
    return f"{_typed(layout.dtype, layout.size)}{f' on {layout.device}' if layout.device else ''}"


def _size(buffer: BufferFact) -> str:
    return "" if buffer.bytes is None else f"{buffer.bytes:,} bytes"


def _stored(buffer: BufferFact) -> str:
    shared = f" in the memory of {buffer.shares_memory_with}" if buffer.shares_memory_with else ""
    if buffer.storage == Storage.REMOVED:
        return REMOVED
    if buffer.storage == Storage.REUSED:
        return f"in the memory of {buffer.shares_memory_with or 'another buffer'}"
    return {Storage.NONE: "no tensor", Storage.UNKNOWN: "storage unknown"}.get(
        buffer.storage, f"{buffer.storage}{shared}"
    )


def _holds(buffer: BufferFact) -> str:
    if buffer.fx_node is not None:
        return f"holds {buffer.fx_node}"
    return f"holds no value that an FX node is known to be: {buffer.reason}" if buffer.reason else ""


def _read_by(buffer: BufferFact) -> str:
    users = [name for name in dict.fromkeys(buffer.users) if name != "OUTPUT"]
    return f"read by {', '.join(users)}" if users else ""


def _scheduler_node(leaf: DumpNode) -> Told:
    reads = dict.fromkeys(dep.buffer for dep in leaf.reads if dep.kind != "WeakDep")
    parts = [
        f"{leaf.node_class}({', '.join(leaf.inner)})",
        f"loops {leaf.iteration}" if leaf.iteration else "",
        f"reads {', '.join(reads)}" if reads else "",
    ]
    return Told("; ".join(part for part in parts if part), None, leaf.location)


def _kernel_words(kernel: KernelFact) -> Iterator[str]:
    yield kernel.backend
    yield counted(kernel.calls, "call")
    if kernel.loop_nests is not None:
        yield counted(kernel.loop_nests, "loop nest")
    if kernel.bytes_read is not None and kernel.bytes_written is not None:
        yield f"reads {kernel.bytes_read:,} bytes, writes {kernel.bytes_written:,}"
