"""The rows of a report page: one compiled graph as five columns, and which rows belong to one path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from analyzer.describe import Describer, Told
from analyzer.facts import BufferFact, Evidence, Fate, GraphFacts, GroupFact, KernelFact, NodeFact
from analyzer.graph import Key, NodeKind, source_id, to_networkx
from analyzer.model import StrEnum
from analyzer.views.fates import fate_text
from analyzer.views.text import byte_text, counted, listed, mentioned


class Layer(StrEnum):
    """The columns, in the order of compilation."""

    SOURCE = "source"
    FX_NODE = "fx_node"
    BUFFER = "buffer"
    GROUP = "group"
    KERNEL = "kernel"


TITLES: Mapping[Layer, tuple[str, str]] = {
    Layer.SOURCE: ("Source", "source line"),
    Layer.FX_NODE: ("Post-grad FX nodes", "FX node"),
    Layer.BUFFER: ("Buffers", "buffer"),
    Layer.GROUP: ("Groups", "group"),
    Layer.KERNEL: ("Kernels", "kernel"),
}
"""The heading of a column, and what one of its rows is called."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row: `note` says in a few words what became of it, `told` the whole, `evidence` how that is known.

    `quiet` rows (graph inputs and constants) are many and seldom asked for; a page hides them at first.
    """

    number: int
    layer: Layer
    name: str
    note: str
    told: Told
    evidence: Evidence = Evidence.NONE
    code: str | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class LayeredGraph:
    """All rows of one graph, numbered from 0; `below` are for each row those of later layers that it leads to."""

    items: tuple[Item, ...]
    below: tuple[tuple[int, ...], ...]

    def column(self, layer: Layer) -> list[Item]:
        """The rows of one layer, in the order of its artifact."""
        return [item for item in self.items if item.layer == layer]


def layered(facts: GraphFacts) -> LayeredGraph:
    """The rows and their connections, as the facts attribute them; what no artifact explains stays unconnected."""
    return _Rows(facts).graph()


def row_numbers(graph: LayeredGraph, layer: Layer) -> dict[str, int]:
    """The numbers of one layer's rows by name."""
    return {item.name: item.number for item in graph.items if item.layer == layer}


_QUIET = (Fate.INPUT, Fate.CONSTANT)
_RowKey = tuple[Layer, str]


@dataclass
class _Rows:
    facts: GraphFacts
    _items: list[Item] = field(default_factory=list)
    _numbers: dict[_RowKey, int] = field(default_factory=dict)

    def graph(self) -> LayeredGraph:
        for nodes in (self._sources(), self._fx_nodes(), self._buffers(), self._groups(), self._kernels()):
            for item in nodes:
                self._numbers[item.layer, item.name] = item.number
                self._items.append(item)
        below: list[dict[int, None]] = [{} for _ in self._items]
        for tail, head in self._edges():
            if tail in self._numbers and head in self._numbers:
                below[self._numbers[tail]][self._numbers[head]] = None
        return LayeredGraph(tuple(self._items), tuple(tuple(heads) for heads in below))

    # ------------------------------------------------------------------------------------------------------------ rows

    @cached_property
    def _tell(self) -> Describer:
        return Describer(self.facts, to_networkx(self.facts))

    @cached_property
    def _nodes(self) -> list[NodeFact]:
        return [fact for fact in self.facts.nodes if fact.node.op != "output"]

    @cached_property
    def _by_name(self) -> Mapping[str, BufferFact]:
        return {buffer.name: buffer for buffer in self.facts.buffers}

    def _item(self, layer: Layer, name: str, note: str, key: Key, **more: object) -> Item:
        return Item(len(self._items), layer, name, note, self._tell(key), **more)  # type: ignore[arg-type]

    def _sources(self) -> Iterator[Item]:
        """Lines in the order of the program, then the pre-grad ops of nodes whose line nobody recorded."""
        sites = {source_id(fact.source): fact.source for fact in self._nodes if fact.source is not None}
        for name, site in sorted(sites.items(), key=lambda pair: (pair[1].file, pair[1].line)):
            yield self._item(Layer.SOURCE, name, site.code or "", (NodeKind.SOURCE, name))
        for op in dict.fromkeys(op for fact in self._nodes if fact.source is None for op in fact.source_ops):
            yield Item(
                len(self._items), Layer.SOURCE, op, "pre-grad op", Told("no source line is recorded for this op")
            )

    def _fx_nodes(self) -> Iterator[Item]:
        for fact in self._nodes:
            note = fate_text(fact, self._by_name.get(fact.buffer or ""))
            key = (NodeKind.FX_NODE, fact.name)
            yield self._item(Layer.FX_NODE, fact.name, note, key, evidence=fact.evidence, quiet=fact.fate in _QUIET)

    def _buffers(self) -> Iterator[Item]:
        for fact in self.facts.buffers:
            key = (NodeKind.BUFFER, fact.name)
            yield self._item(Layer.BUFFER, fact.name, _buffer_note(fact), key, evidence=fact.evidence)

    def _groups(self) -> Iterator[Item]:
        computed = self.facts.computed_by_group()
        for fact in self.facts.groups:
            note = _group_note(fact, computed[fact.name])
            yield self._item(Layer.GROUP, fact.name, note, (NodeKind.GROUP, fact.name))

    def _kernels(self) -> Iterator[Item]:
        code = self.facts.graph.code
        sources = {kernel.name: kernel.source for kernel in code.kernels} if code is not None else {}
        for fact in self.facts.kernels:
            text = sources.get(fact.name) or None
            key = (NodeKind.KERNEL, fact.name)
            yield self._item(Layer.KERNEL, fact.name, _kernel_note(fact), key, evidence=fact.evidence, code=text)

    # ----------------------------------------------------------------------------------------------------- connections

    def _edges(self) -> Iterator[tuple[_RowKey, _RowKey]]:
        for node in self._nodes:
            yield from self._node_edges(node)
        for buffer in self.facts.buffers:
            if buffer.group is not None:
                yield (Layer.BUFFER, buffer.name), (Layer.GROUP, buffer.group)
            elif buffer.kernel is not None:
                yield (Layer.BUFFER, buffer.name), (Layer.KERNEL, buffer.kernel)
        for kernel in self.facts.kernels:
            for group in kernel.groups:
                yield (Layer.GROUP, group), (Layer.KERNEL, kernel.name)

    def _node_edges(self, node: NodeFact) -> Iterator[tuple[_RowKey, _RowKey]]:
        key = (Layer.FX_NODE, node.name)
        sources = [source_id(node.source)] if node.source is not None else node.source_ops
        yield from (((Layer.SOURCE, source), key) for source in sources)
        own = [node.buffer] if node.buffer is not None and node.fate == Fate.REALIZED else []
        buffers = [name for name in (*own, *node.inlined_into) if name in self._by_name]
        yield from ((key, (Layer.BUFFER, name)) for name in buffers)
        if not buffers:  # a run without IR dumps: only the kernel is known
            yield from ((key, (Layer.KERNEL, name)) for name in node.kernels)


def item_title(item: Item) -> str:
    """What a row shows of its name: file names without their folders."""
    if item.layer != Layer.SOURCE:
        return item.name
    return PurePosixPath(item.name).name if "/" in item.name else item.name


def _buffer_note(fact: BufferFact) -> str:
    layout = fact.layout
    kind = (layout.dtype or "").removeprefix("torch.") if layout is not None else ""
    size = f"[{', '.join(map(str, layout.size))}]" if layout is not None and layout.size is not None else ""
    shared = f" in {fact.shares_memory_with}" if fact.shares_memory_with else ""
    stored = "fused away" if fact.storage == "removed" else f"{fact.storage}{shared}"
    return mentioned([stored, kind + size, byte_text(fact.bytes) if fact.bytes is not None else ""])


def _group_note(fact: GroupFact, computed: tuple[str, ...]) -> str:
    members = listed(fact.members, most=4) if len(fact.members) > 1 else ""
    return mentioned([fact.node_class, members, listed(computed, most=4), fact.reason or ""])


def _kernel_note(fact: KernelFact) -> str:
    nests = counted(fact.loop_nests, "loop nest") if fact.loop_nests is not None else ""
    moved = f"reads {byte_text(fact.bytes_read)}, writes {byte_text(fact.bytes_written)}"
    guess = "matched by name only" if fact.evidence == Evidence.NAME else ""
    return mentioned([fact.backend, counted(fact.calls, "call"), nests, moved, guess])
