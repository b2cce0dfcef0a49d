"""Where views start in the memory of the value below them."""

from __future__ import annotations

import pytest

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.strides import load_offsets, offset_of
from analyzer.artifacts import fx_graph
from analyzer.model import Block, Layout, LoopBody, Statement

PROJECTION = Layout("FixedLayout", "", "cpu", "torch.float32", (32, 192), (192, 1))


def index(lines: str) -> FxIndex:
    """An FX graph over the input x, f32[32, 192]."""
    body = "".join(f"        {line}\n" for line in lines.strip().splitlines())
    text = f'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[32, 192]"):\n{body}'
    graph = fx_graph.parse(text, "fx_graph_transformed.py")
    assert not graph.artifact.problems
    return FxIndex(graph.nodes, graph.outputs)


QKV = """
view: "f32[16, 2, 3, 64]" = torch.ops.aten.reshape.default(x, [16, 2, 3, 64])
permute: "f32[3, 16, 2, 64]" = torch.ops.aten.permute.default(view, [2, 0, 1, 3])
q: "f32[16, 2, 64]" = torch.ops.aten.select.int(permute, 0, 0)
k: "f32[16, 2, 64]" = torch.ops.aten.select.int(permute, 0, 1)
v: "f32[16, 2, 64]" = torch.ops.aten.select.int(permute, 0, -1)
merged: "f32[16, 8, 16]" = torch.ops.aten.reshape.default(v, [16, 8, 16])
scaled: "f32[16, 8, 16]" = torch.ops.aten.mul.Tensor(merged, 0.5)
tail: "f32[16, 2, 32]" = torch.ops.aten.slice.Tensor(k, 2, 32, 9223372036854775807)
return (q, k, scaled, tail)
"""


@pytest.mark.parametrize(
    ("node", "offset"),
    [("q", 0), ("k", 64), ("v", 128), ("merged", 128), ("scaled", 128), ("tail", 96), ("permute", 0)],
)
def test_offsets_follow_views_and_elementwise_operations(node, offset):
    assert offset_of(index(QKV), node, "x", PROJECTION) == offset


def test_a_select_on_folded_dimensions_is_not_guessed():
    """`merged` folds [2, 64] of strides 192 and 1 into [8, 16]: no stride describes it, so nothing is said."""
    graph = index(QKV.replace("return", 'row: "f32[16, 16]" = torch.ops.aten.select.int(merged, 1, 5)\nreturn'))
    assert offset_of(graph, "row", "x", PROJECTION) is None


def test_pieces_of_a_split():
    graph = index("""
split = torch.ops.aten.split_with_sizes.default(x, [64, 100, 28], 1)
getitem: "f32[32, 64]" = split[0]
getitem_2: "f32[32, 28]" = split[2]
return (getitem, getitem_2)
""")
    assert offset_of(graph, "getitem", "x", PROJECTION) == 0
    assert offset_of(graph, "getitem_2", "x", PROJECTION) == 164


def test_symbolic_sizes_are_not_guessed():
    layout = Layout("FixedLayout", "", "cpu", "torch.float32", ("s0", 192), (192, 1))
    assert offset_of(index(QKV), "k", "x", layout) is None


def test_the_constant_term_of_an_index():
    statements = (
        Statement("get_index", "get_index", ("index0",)),
        Statement("load", "load", ("buf1", "get_index")),
        Statement("get_index_1", "get_index", ("index1",)),
        Statement("load_1", "load", ("buf1", "get_index_1")),
    )
    indices = (("index0", "64*p0 + ModularIndexing(p1, 1, 4) + 128"), ("index1", "p1 - 3"))
    body = LoopBody((("p0", 4),), indices, (Block("body", statements),))
    assert load_offsets(body, "buf1") == {128, -3}
    assert load_offsets(body, "buf2") == frozenset()
