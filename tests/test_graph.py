"""The networkx graph: its keys, its kinds of edges, what can be reached, and what other tools can read of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import networkx as nx
import pytest

from analyzer.analyze import analyze
from analyzer.facts import BufferFact, GraphFacts, GroupFact, KernelFact, NodeFact
from analyzer.graph import EdgeKind, Graph, NodeKind, computing, export, to_networkx
from analyzer.load import load_run
from analyzer.model import DumpNode, SourceSite

FIXTURES = Path(__file__).parent.parent / "fixtures"
LAST, MATMUL = "cpp_fused_div_mul_sin_sum_tanh_1", "extern_kernels.mm"


@pytest.fixture(scope="module")
def facts() -> GraphFacts:
    return analyze(load_run(FIXTURES / "captured/apart-2.13").graphs[0])


@pytest.fixture(scope="module")
def graph(facts: GraphFacts) -> Graph:
    return to_networkx(facts)


def of_kind(keys: object, kind: str) -> set[str]:
    return {name for found, name in keys if found == kind}  # type: ignore[attr-defined]


def test_nodes_are_keyed_by_kind_and_id_and_carry_their_record(graph: Graph) -> None:
    records = {
        "fx_node": NodeFact,
        "buffer": BufferFact,
        "scheduler_node": DumpNode,
        "group": GroupFact,
        "kernel": KernelFact,
        "source": SourceSite,
        "pre_op": str,
    }
    assert {kind for kind, _ in graph} == set(records) == {str(kind) for kind in NodeKind}
    assert all(isinstance(data["record"], records[kind]) for (kind, _), data in graph.nodes(data=True))


@pytest.mark.parametrize(
    ("tail", "head", "kind"),
    [
        (("pre_op", "twice"), ("fx_node", "mul"), "came_from"),
        (("fx_node", "exp"), ("buffer", "buf0"), "lowers_to"),
        (("fx_node", "mul"), ("buffer", "buf1"), "inlined_into"),
        (("fx_node", "mul"), ("buffer", "buf3"), "inlined_into"),
        (("buffer", "buf0"), ("scheduler_node", "op0"), "writes"),
        (("buffer", "buf0"), ("scheduler_node", "op1"), "reads"),
        (("fx_node", "arg0_1"), ("scheduler_node", "op0"), "reads"),
        (("scheduler_node", "op1"), ("group", "op0_op1"), "member_of"),
        (("group", "op5"), ("kernel", LAST), "emitted_as"),
    ],
)
def test_edges(graph: Graph, tail: tuple[str, str], head: tuple[str, str], kind: str) -> None:
    assert kind in {str(known) for known in EdgeKind}
    assert graph.edges[tail, head, kind]["kind"] == kind


def test_a_line_becomes_its_kernels(graph: Graph) -> None:
    """`twice = x * 3` is computed in the loops of relu and of the sum."""
    line = next(key for key in graph if key[0] == "source" and key[1].endswith("apart.py:9"))
    reached = nx.descendants(computing(graph), line)
    assert of_kind(reached, "kernel") == {"cpp_fused_add_exp_mul_relu_0", LAST}
    assert of_kind(reached, "buffer") == {"buf1", "buf3"}


def test_a_kernel_computes_its_ancestors(graph: Graph) -> None:
    """exp is only loaded there, from buf0: it is an ancestor as long as reads count."""
    computed = nx.ancestors(computing(graph), ("kernel", LAST))
    assert of_kind(computed, "fx_node") == {"mul", "mul_1", "sum_1", "sin", "div", "tanh"}
    touched = nx.ancestors(graph, ("kernel", LAST))
    assert {"exp", "mm", "arg0_1", "arg1_1"} <= of_kind(touched, "fx_node")


def test_edges_only_lead_to_later_layers(graph: Graph) -> None:
    order = [str(kind) for kind in NodeKind]
    assert all(order.index(tail[0]) < order.index(head[0]) for tail, head in graph.edges())


@pytest.mark.parametrize("run", sorted(p.relative_to(FIXTURES).as_posix() for p in (FIXTURES / "runs").glob("*/*")))
def test_every_run_gives_a_layered_graph_that_can_be_exported(run: str) -> None:
    for compiled in load_run(FIXTURES / run).graphs:
        graph = to_networkx(analyze(compiled))
        assert nx.is_directed_acyclic_graph(graph)
        read = nx.read_graphml(BytesIO(export([graph], "graphml").encode()), force_multigraph=True)
        assert (len(read), read.size()) == (len(graph), graph.size())


# --------------------------------------------------------------------------------------------------------------- export


def test_graphml_reads_back(graph: Graph) -> None:
    read = nx.read_graphml(BytesIO(export([graph], "graphml").encode()), force_multigraph=True)
    name = graph.graph["name"]
    assert read.nodes[f"{name}/buffer/buf0"]["bytes"] == 512
    assert read.nodes[f"{name}/fx_node/mul"]["fate"] == "inlined"
    assert nx.has_path(read, f"{name}/fx_node/exp", f"{name}/kernel/cpp_fused_add_exp_mul_relu_0")


def test_json_names_every_node_and_edge(graph: Graph) -> None:
    document = json.loads(export([graph], "json"))
    ids = {node["id"] for node in document["nodes"]}
    assert len(ids) == len(graph)
    assert len(document["edges"]) == graph.size()
    assert all(edge["source"] in ids and edge["target"] in ids for edge in document["edges"])


def test_graphs_of_a_run_stay_apart(facts: GraphFacts, graph: Graph) -> None:
    other = to_networkx(replace(facts, graph=replace(facts.graph, name="model__1_forward_1.1")))
    document = json.loads(export([graph, other], "json"))
    assert len(document["nodes"]) == 2 * len(graph)
    assert {node["graph"] for node in document["nodes"]} == {"model__0_inference_0.0", "model__1_forward_1.1"}


def test_hostile_names_break_no_format(sin_cos: GraphFacts) -> None:
    hostile = 'a"]; b\\ <x>\x00\x1b[31m\n'
    node = replace(sin_cos.nodes[1].node, name=hostile)
    graph = to_networkx(replace(sin_cos, nodes=(replace(sin_cos.nodes[1], node=node),)))
    read = nx.read_graphml(BytesIO(export([graph], "graphml").encode()))
    assert any('a"]; b\\ <x>' in key for key in read)
    line = next(line for line in export([graph], "dot").splitlines() if "/fx_node/" in line and "label=" in line)
    assert line.startswith('  "model__0_inference_0.0/fx_node/a\\"]; b\\\\ <x>')
    assert "\x1b" not in export([graph], "dot")


def test_dot_has_no_bare_word_that_is_one_of_the_language(graph: Graph) -> None:
    """`graph`, `node`, `edge` and the like are attributes of ours, too, and must stand in quotes."""
    statements = export([graph], "dot").splitlines()[3:-1]
    bare = {word for line in statements for word in re.findall(r"\w+", re.sub(r'"(?:[^"\\]|\\.)*"', "", line))}
    assert bare == {"label"}


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs graphviz")
def test_graphviz_draws_it(graph: Graph, sin_cos: GraphFacts) -> None:
    hostile = replace(sin_cos.nodes[1], node=replace(sin_cos.nodes[1].node, name='a"]; b\\ <x>\\'))
    other = to_networkx(replace(sin_cos, graph=replace(sin_cos.graph, name='g"; {'), nodes=(hostile,)))
    text = export([graph, other], "dot")
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.count('class="node"') == len(graph) + len(other)
    assert "a&quot;]; b\\ &lt;x&gt;\\" in done.stdout


def test_an_unknown_format_is_refused(graph: Graph) -> None:
    with pytest.raises(ValueError, match="no such export: 'svg'; choose from graphml, dot, json"):
        export([graph], "svg")
