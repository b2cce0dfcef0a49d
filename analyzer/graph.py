"""One compiled graph as a networkx graph over all its layers, for questions that no report answers.

    source line → pre-grad op → post-grad FX node → buffer → scheduler node → group → kernel

Every edge leads from an earlier layer to a later one, so `nx.descendants` goes towards the kernels and `nx.ancestors`
towards the source lines. Nodes are keyed `(kind, id)` and carry `record` (the fact, or the id where there is none) and
plain attributes; edges are keyed by their kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx

from analyzer.facts import BufferFact, Fate, GraphFacts, KernelFact, NodeFact
from analyzer.model import DumpNode, SourceSite, StrEnum
from analyzer.reasons.why import leaves_of

if TYPE_CHECKING:
    Graph: TypeAlias = nx.MultiDiGraph[Any]
else:
    Graph = nx.MultiDiGraph

Key = tuple[str, str]
"""`(kind, id)`."""

SCHEMA_VERSION = 1


class NodeKind(StrEnum):
    """The layers, in the order of compilation."""

    SOURCE = "source"
    PRE_OP = "pre_op"
    FX_NODE = "fx_node"
    BUFFER = "buffer"
    SCHEDULER_NODE = "scheduler_node"
    GROUP = "group"
    KERNEL = "kernel"


class EdgeKind(StrEnum):
    """What the later end has to do with the earlier one.

    An FX node came from a pre-grad op or a line; it lowers to the buffer that holds its value and is inlined into
    those in whose loops it is computed; a scheduler node writes the buffer, or reads it (an FX node: a graph input or
    constant); it is a member of a group, which is emitted as a kernel.
    """

    CAME_FROM = "came_from"
    LOWERS_TO = "lowers_to"
    INLINED_INTO = "inlined_into"
    WRITES = "writes"
    READS = "reads"
    MEMBER_OF = "member_of"
    EMITTED_AS = "emitted_as"


def to_networkx(facts: GraphFacts) -> Graph:
    """The graph of one compiled graph. `graph.graph` has its name and its kind."""
    graph: Graph = nx.MultiDiGraph(name=facts.graph.label, kind=facts.graph.kind)
    for fact in facts.nodes:
        _add_fx_node(graph, fact)
    for buffer in facts.buffers:
        _add(graph, NodeKind.BUFFER, buffer.name, buffer, **_buffer_attributes(buffer))
    for group in facts.groups:
        _add(graph, NodeKind.GROUP, group.name, group, node_class=group.node_class)
    for kernel in facts.kernels:
        _add(graph, NodeKind.KERNEL, kernel.name, kernel, **_kernel_attributes(kernel))
    for leaf in leaves_of(facts):
        _add(graph, NodeKind.SCHEDULER_NODE, leaf.name, leaf, node_class=leaf.node_class)
    for edge in _edges(facts):
        edge.put(graph)
    return graph


def computing(graph: Graph) -> Graph:
    """A view without the edges of kind `reads`: there a kernel's ancestors are what it computes, and nothing else.

    With them, they include the values and inputs that it loads.
    """
    view: Graph = nx.subgraph_view(graph, filter_edge=_is_no_read)
    return view


def _is_no_read(_tail: Any, _head: Any, kind: Any) -> bool:
    return bool(kind != EdgeKind.READS)


# ------------------------------------------------------------------------------------------------------------- building


@dataclass(frozen=True, slots=True)
class _Edge:
    tail: Key
    head: Key
    kind: EdgeKind

    def put(self, graph: Graph) -> None:
        """Only between nodes that exist: a name that no artifact explains gets no node here."""
        if self.tail in graph and self.head in graph:
            graph.add_edge(self.tail, self.head, key=str(self.kind), kind=str(self.kind))


def _add(graph: Graph, kind: NodeKind, name: str, record: object, **attributes: object) -> Key:
    key = (str(kind), name)
    if key not in graph:
        known = {key: value for key, value in attributes.items() if value is not None}
        graph.add_node(key, record=record, kind=str(kind), label=name, **known)
    return key


def _add_fx_node(graph: Graph, fact: NodeFact) -> None:
    node = fact.node
    attributes = {"target": node.target, "fate": str(fact.fate), "dtype": node.dtype, "evidence": str(fact.evidence)}
    key = _add(graph, NodeKind.FX_NODE, fact.name, fact, **attributes)
    line = _add_source(graph, fact.source) if fact.source is not None else None
    ops = [_add(graph, NodeKind.PRE_OP, name, name) for name in fact.source_ops]
    for op in ops:
        _Edge(op, key, EdgeKind.CAME_FROM).put(graph)
    for head in ops or [key]:
        if line is not None:
            _Edge(line, head, EdgeKind.CAME_FROM).put(graph)


def _add_source(graph: Graph, site: SourceSite) -> Key:
    return _add(graph, NodeKind.SOURCE, source_id(site), site, code=site.code, function=site.function)


def source_id(site: SourceSite) -> str:
    """`/home/user/model.py:17`."""
    return f"{site.file}:{site.line}"


def _edges(facts: GraphFacts) -> Iterator[_Edge]:
    """From FX nodes down to kernels."""
    for fact in facts.nodes:
        yield from _lowering_edges(fact)
    for leaf in leaves_of(facts):
        yield from _access_edges(leaf)
    for group in facts.groups:
        for member in group.members:
            yield _edge(NodeKind.SCHEDULER_NODE, member, NodeKind.GROUP, group.name, EdgeKind.MEMBER_OF)
    for kernel in facts.kernels:
        for name in kernel.groups:
            yield _edge(NodeKind.GROUP, name, NodeKind.KERNEL, kernel.name, EdgeKind.EMITTED_AS)


def _edge(tail: NodeKind, tail_id: str, head: NodeKind, head_id: str, kind: EdgeKind) -> _Edge:
    return _Edge((str(tail), tail_id), (str(head), head_id), kind)


def _lowering_edges(fact: NodeFact) -> Iterator[_Edge]:
    if fact.buffer is not None and fact.fate == Fate.REALIZED:
        yield _edge(NodeKind.FX_NODE, fact.name, NodeKind.BUFFER, fact.buffer, EdgeKind.LOWERS_TO)
    for name in fact.inlined_into:
        yield _edge(NodeKind.FX_NODE, fact.name, NodeKind.BUFFER, name, EdgeKind.INLINED_INTO)


def _access_edges(leaf: DumpNode) -> Iterator[_Edge]:
    """What a scheduler node makes and loads; the names of graph inputs are those of their FX nodes."""
    own = [buffer.name for buffer in leaf.buffers]
    for name in own:
        yield _edge(NodeKind.BUFFER, name, NodeKind.SCHEDULER_NODE, leaf.name, EdgeKind.WRITES)
    for name in dict.fromkeys(dep.buffer for dep in leaf.reads if dep.kind != "WeakDep" and dep.buffer not in own):
        for kind in (NodeKind.BUFFER, NodeKind.FX_NODE):
            yield _edge(kind, name, NodeKind.SCHEDULER_NODE, leaf.name, EdgeKind.READS)


def _buffer_attributes(buffer: BufferFact) -> dict[str, object]:
    layout = buffer.layout
    return {
        "ir_class": buffer.ir_class,
        "storage": str(buffer.storage),
        "bytes": buffer.bytes,
        "dtype": layout.dtype if layout else None,
        "device": layout.device if layout else None,
        "evidence": str(buffer.evidence),
    }


def _kernel_attributes(kernel: KernelFact) -> dict[str, object]:
    return {
        "backend": kernel.backend,
        "calls": kernel.calls,
        "loop_nests": kernel.loop_nests,
        "bytes_read": kernel.bytes_read,
        "bytes_written": kernel.bytes_written,
    }


# ------------------------------------------------------------------------------------------------------------ exporting


def export(graphs: Iterable[Graph], form: str) -> str:
    """All graphs of a run as one text: `graphml`, `dot` or `json`. Nodes of different graphs stay apart.

    ValueError for another form.
    """
    writers = {"graphml": _graphml, "dot": _dot, "json": _json}
    if form not in writers:
        raise ValueError(f"no such export: {form!r}; choose from {', '.join(writers)}")
    return writers[form](_plain(graphs))


def _plain(graphs: Iterable[Graph]) -> Graph:
    """Text keys and text or number attributes only, and no character that XML forbids."""
    whole: Graph = nx.MultiDiGraph()
    for graph in graphs:
        name = _clean(str(graph.graph.get("name", "")))
        for key, attributes in graph.nodes(data=True):
            kept = {k: _clean(v) if isinstance(v, str) else v for k, v in attributes.items() if k != "record"}
            whole.add_node(_plain_id(name, key), graph=name, **kept)
        for tail, head, kind in graph.edges(keys=True):
            whole.add_edge(_plain_id(name, tail), _plain_id(name, head), kind=kind)
    return whole


def _plain_id(graph: str, key: Key) -> str:
    kind, name = key
    return f"{graph}/{kind}/{_clean(name)}"


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _graphml(graph: Graph) -> str:
    written = BytesIO()
    nx.write_graphml_xml(graph, written)
    return written.getvalue().decode("utf-8") + "\n"


def _dot(graph: Graph) -> str:
    nodes = [f"  {_quoted(key)} [{_dot_attributes(attributes)}];" for key, attributes in graph.nodes(data=True)]
    edges = [
        f"  {_quoted(tail)} -> {_quoted(head)} [label={_quoted(attributes['kind'])}];"
        for tail, head, attributes in graph.edges(data=True)
    ]
    return "\n".join(["digraph inductor {", "  rankdir=TB;", "  node [shape=box];", *nodes, *edges, "}", ""])


def _dot_attributes(attributes: Mapping[str, Any]) -> str:
    """Names are quoted like values: `graph` and `node` are words of the language itself."""
    told = {**attributes, "label": f"{attributes['kind']}\n{attributes['label']}"}
    return ", ".join(f"{_quoted(name)}={_quoted(str(value))}" for name, value in told.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _json(graph: Graph) -> str:
    nodes = [{"id": key, **attributes} for key, attributes in graph.nodes(data=True)]
    edges = [{"source": tail, "target": head, **data} for tail, head, data in graph.edges(data=True)]
    document = {"schema_version": SCHEMA_VERSION, "nodes": nodes, "edges": edges}
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"
