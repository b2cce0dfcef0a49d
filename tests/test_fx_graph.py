"""FX graphs as torch prints them: nodes, types, sources, liveness, and what a damaged line costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts.annotations import parse_annotation, source_site
from analyzer.artifacts.fx_graph import parse
from analyzer.model import ArtifactState, FxGraph, FxNode, Location, SourceSite

RUNS = Path(__file__).parent.parent / "fixtures/runs"
ALL = sorted(RUNS.glob("**/fx_graph_transformed.py")) + sorted(RUNS.glob("**/fx_graph_readable.py"))


def fixture(program: str, graph: str) -> FxGraph:
    (path,) = RUNS.glob(f"{program}/**/{graph}/fx_graph_transformed.py")
    return parse(path.read_text(), "fx.py")


def node(graph: FxGraph, name: str) -> FxNode:
    return next(node for node in graph.nodes if node.name == name)


def body(*lines: str, arguments: str = 'a: "f32[8]", b: "f32[8]"') -> FxGraph:
    text = "\n".join(["class <lambda>(torch.nn.Module):", f"    def forward(self, {arguments}):", *lines])
    return parse(text, "fx.py")


@pytest.mark.parametrize("path", ALL, ids=lambda path: "-".join(path.parts[-6:-4] + path.parts[-2:]))
def test_every_fixture_is_read_whole(path: Path) -> None:
    text = path.read_text()
    graph = parse(text, "fx.py")
    assert graph.artifact.state is ArtifactState.PARSED
    statements = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    in_body = [line for line in statements if " = " in line and "def " not in line and "_spec" not in line]

    def computed(part: FxGraph) -> int:
        own = sum(node.op not in ("placeholder", "output") for node in part.nodes)
        return own + sum(map(computed, part.subgraphs.values()))

    assert computed(graph) == len(in_body)


def test_line_ends_of_windows_change_nothing() -> None:
    for path in ALL[:4]:
        text = path.read_text()
        assert parse(text.replace("\n", "\r\n"), "fx.py").nodes == parse(text, "fx.py").nodes


def test_renamed_inputs_keep_their_order() -> None:
    graph = body("        l_y_ = L_y_", "        b = torch.neg(x)", "        return (b, l_y_)", arguments="L_y_, x")
    assert [item.name for item in graph.nodes] == ["l_y_", "x", "b", "output"]
    late = body("        c = torch.neg(a)", "        d = a", "        return (c,)")
    assert [problem.message for problem in late.artifact.problems] == [
        "expected a call, an attribute of self, or an operator"
    ]


def test_backward_graph_of_a_training_step() -> None:
    graph = fixture("cpu-2.13/c11_mlp_train", "model__0_backward_3.1")
    assert [item.name for item in graph.nodes[:5]] == ["primals_3", "primals_4", "addmm", "mul", "tangents_1"]
    assert graph.outputs == ("mm_2", "view_1", None, "mm_1", "view")
    full = node(graph, "full_default")
    assert (full.target, full.args) == ("aten.full.default", ("[]", "0.0"))
    assert full.kwargs == (
        ("dtype", "torch.float32"),
        ("layout", "torch.strided"),
        ("device", "device(type='cpu')"),
        ("pin_memory", "False"),
    )
    assert (full.dtype, full.shape, full.stride, full.device) == ("torch.float32", (), None, None)
    where = node(graph, "where")
    assert where.inputs == ("le", "full_default", "add")
    assert where.users == ("permute_6", "sum_2")
    assert where.source == SourceSite("/home/user/zoo/c11_mlp_train.py", 10, "forward", "h = torch.relu(self.fc1(x))")
    assert where.location == Location("fx.py", 27, 9)
    assert all(item.live for item in graph.nodes)
    assert graph.nodes[-1].op == "output"
    assert graph.nodes[-1].inputs == ("mm_2", "view_1", "mm_1", "view")


def test_branches_of_a_cond_are_subgraphs_by_attribute_name() -> None:
    graph = fixture("cpu-2.13/c29_cond", "model__0_inference_0.0")
    assert list(graph.subgraphs) == ["true_graph_0", "false_graph_0"]
    assert (node(graph, "true_graph_0").op, node(graph, "true_graph_0").target) == ("get_attr", "true_graph_0")
    cond = node(graph, "cond")
    assert cond.target == "higher_order.cond"
    assert cond.inputs == ("arg1_1", "true_graph_0", "false_graph_0", "mul")
    assert cond.annotation is None
    item = node(graph, "getitem")
    assert (item.target, item.args, item.inputs) == ("operator.getitem", ("cond", "0"), ("cond",))
    assert [item.name for item in graph.subgraphs["true_graph_0"].nodes] == ["arg0_1", "sin", "add", "relu", "output"]
    assert graph.subgraphs["false_graph_0"].outputs == ("addmm_default",)


def test_symbolic_sizes_asserts_and_operators() -> None:
    graph = fixture("cpu-2.13/c26_unbacked", "model__0_inference_0.0")
    assert node(graph, "nonzero").shape == ("u0", 1)
    size = node(graph, "sym_size_int")
    assert (size.annotation, size.dtype, size.shape) == ("Sym(u0)", None, None)
    greater = node(graph, "ge")
    assert (greater.target, greater.args, greater.annotation) == ("operator.ge", ("sym_size_int", "0"), "Sym(u0 >= 0)")
    check = node(graph, "_assert_scalar")
    assert check.live
    assert check.inputs == ("ge",), "the quoted 'ge_1' in its message is no input"
    full = node(graph, "full")
    assert full.inputs == ("_local_scalar_dense",)
    assert (full.dtype, full.shape) == ("torch.float32", ("u4",))


def test_copies_into_inputs_are_live_and_unused_values_are_dead() -> None:
    graph = fixture("cpu-2.13/c21_copy_", "model__0_inference_0.0")
    assert graph.outputs == ("mul",)
    assert {item.name for item in graph.nodes if not item.live} == {"select_2"}
    assert node(graph, "copy_").live
    assert node(graph, "copy_").users == ()


def test_aot_inductor_takes_inputs_from_a_flattened_tree() -> None:
    graph = fixture("cpu-2.13/c46_aoti", "model___0.0")
    first = graph.nodes[0]
    assert (first.name, first.op, first.shape) == ("arg2_1", "placeholder", (4, 16))
    assert first.location == Location("fx.py", 5, 9)
    weight = node(graph, "fc_weight")
    assert (weight.op, weight.target, weight.source) == ("get_attr", "fc.weight", None)
    assert node(graph, "addmm").source.line == 134  # type: ignore[union-attr]


def test_torch_2_5_prints_the_same_graph_with_wider_comments() -> None:
    graph = fixture("cpu-2.5/c11_mlp_train", "model__0_forward_1.0")
    relu = node(graph, "relu")
    assert relu.source == SourceSite("/home/user/zoo/c11_mlp_train.py", 10, "forward", "h = torch.relu(self.fc1(x))")
    assert relu.shape == (8, 64)


def test_expanded_signatures_and_returns_of_trace_logs() -> None:
    graph = parse(
        """class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[64, 32][32, 1]cuda:0"  # PlainAOTInput(idx=0)
        tangents_1: "Sym(s3)"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # File: /a dir/f.py:10 in forward, code: h = "x, code: y"
        t: "f32[32, 64][1, 32]cuda:0" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        return pytree.tree_unflatten([
            t,  # PlainAOTOutput(idx=0)
            None,  # None
            tangents_1,
        ], self._out_spec)
""",
        "log",
    )
    assert graph.artifact.problems == ()
    assert [item.name for item in graph.nodes] == ["primals_1", "tangents_1", "t", "output"]
    first = graph.nodes[0]
    assert (first.stride, first.device, first.location) == ((32, 1), "cuda:0", Location("log", 9, 9))
    assert node(graph, "t").source == SourceSite("/a dir/f.py", 10, "forward", 'h = "x, code: y"')
    assert graph.outputs == ("t", None, "tangents_1")


def test_dynamo_graphs_have_methods_modules_and_renamed_inputs() -> None:
    graph = body(
        "        l_x_ = L_x_",
        '        y: "f32[4, 2]" = l_x_.view(4, -1)',
        "        z = self.L__self___fc(y, scale = l_x_);  y = None",
        "        shape = z.shape",
        '        w = getattr(self.layers, "0").weight',
        "        return (z, (w, shape))",
        arguments='L_x_: "f32[8]"',
    )
    assert (graph.nodes[0].name, graph.nodes[0].target) == ("l_x_", "L_x_")
    assert [(item.op, item.target) for item in graph.nodes[1:-1]] == [
        ("call_method", "view"),
        ("call_module", "L__self___fc"),
        ("call_function", "getattr"),
        ("get_attr", "layers.0.weight"),
    ]
    assert node(graph, "z").inputs == ("y", "l_x_")
    assert graph.outputs == ("z", "w", "shape")


def test_in_place_operators_name_their_node_on_the_right() -> None:
    graph = body(
        "        a += b;  iadd = a",
        "        iadd[0] = b;  setitem = iadd;  iadd = setitem = None",
        "        return (b,)",
    )
    iadd, setitem = node(graph, "iadd"), node(graph, "setitem")
    assert (iadd.target, iadd.args, iadd.location) == ("operator.iadd", ("a", "b"), Location("fx.py", 3, 18))
    assert (setitem.target, setitem.inputs) == ("operator.setitem", ("iadd", "b"))
    assert iadd.live
    assert setitem.live, "it writes to input a through iadd"


def test_writes_to_memory_that_is_read_later_are_live() -> None:
    graph = body(
        "        new = torch.ops.aten.clone.default(a)",
        "        row = torch.ops.aten.select.int(new, 0, 1)",
        "        write = torch.ops.aten.copy_.default(row, b)",
        "        other = torch.ops.aten.clone.default(b)",
        "        lost = torch.ops.aten.copy_.default(other, a)",
        "        sum_1 = torch.ops.aten.sum.default(new)",
        "        return (sum_1,)",
    )
    assert node(graph, "write").live
    assert not node(graph, "lost").live
    assert not node(graph, "other").live


def test_a_custom_op_may_write_to_any_argument() -> None:
    """Its signature is in no dump: one without a result, or with the name of one that writes, is taken to write."""
    graph = body(
        '        out: "f32[8]" = torch.ops.aten.empty.memory_format([8])',
        '        sin: "f32[8]" = torch.ops.aten.sin.default(a)',
        "        fill__default = torch.ops.mylib.fill_.default(sin, out)",
        '        cos: "f32[8]" = torch.ops.aten.cos.default(b)',
        "        sink = torch.ops.mylib.cos_into.default(cos, out)",
        '        unused: "f32[8]" = torch.ops.mylib.twice.default(b)',
        "        return (out,)",
    )
    assert all(node(graph, name).live for name in ("sin", "fill__default", "cos", "sink"))
    assert not node(graph, "unused").live


def test_keywords_and_numbers_are_no_inputs() -> None:
    graph = body(
        "        index = torch.ops.aten.neg.default(a)",
        "        e = torch.ops.aten.neg.default(b)",
        "        c = torch.ops.aten.full.default([2], 1e-05, device = device(type='cuda', index=0), index = e)",
        "        return (c,)",
    )
    assert node(graph, "c").inputs == ("e",)
    assert not node(graph, "index").live


def test_unquoted_annotations_of_torch_2_0() -> None:
    graph = parse(
        "class <lambda>(torch.nn.Module):\n"
        "    def forward(self, arg0_1: f32[2, s0], arg1_1: Sym(s0), arg2_1: f32[]):\n"
        "        # File: /x/f.py:3, code: return x + 1\n"
        "        add: f32[2, s0] = torch.ops.aten.add.Tensor(arg0_1, 1);  arg0_1 = None\n"
        "        s: f32[] = torch.ops.aten.sum.default(add);  add = None\n"
        "        return (s,)\n",
        "fx.py",
    )
    assert graph.artifact.problems == ()
    assert [item.shape for item in graph.nodes[:4]] == [(2, "s0"), None, (), (2, "s0")]
    assert node(graph, "add").source == SourceSite("/x/f.py", 3, None, "return x + 1")


def test_a_comment_holds_until_the_next_one_and_never_into_a_subgraph() -> None:
    graph = body(
        "        # File: f.py:1 in f, code: x",
        "        c = torch.ops.aten.neg.default(a)",
        "        # No stacktrace found for following nodes",
        "        d = torch.ops.aten.neg.default(c)",
        "        # Annotation: {'k': 1} File: g.py:2 in g, code: y",
        "        e = torch.ops.aten.neg.default(d)",
        "        return (e,)",
        "    class body_0(torch.nn.Module):",
        '        def forward(self, x: "f32[1]"):',
        "            y = torch.ops.aten.neg.default(x)",
        "            return y",
    )
    assert [node(graph, name).source and node(graph, name).source.line for name in "cde"] == [1, None, 2]  # type: ignore[union-attr]
    assert node(graph.subgraphs["body_0"], "y").source is None
    assert graph.subgraphs["body_0"].outputs == ("y",)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("        c = torch.ops.aten.neg.default(a", 39, "'(' was never closed"),
        ("        c = torch.ops.aten.add(a,, b)", 34, "invalid syntax"),
        ("        c = 5", 13, "expected a call"),
        ("        what is this", 9, "expected `name:"),
        ("        c = b\x00(a)", 13, "not"),
        ("        c = " + "(" * 500 + "a" + ")" * 500, 213, "nested parentheses"),
    ],
)
def test_a_bad_line_costs_one_node(line: str, column: int, message: str) -> None:
    graph = body(line, "        d = torch.ops.aten.neg.default(b)", "        return (d,)")
    (problem,) = graph.artifact.problems
    assert problem.location == Location("fx.py", 3, column)
    assert message in problem.message
    assert [item.name for item in graph.nodes] == ["a", "b", "d", "output"]
    assert graph.artifact.state is ArtifactState.PARTIAL


def test_nodes_that_a_lost_line_used_stay_live() -> None:
    graph = body(
        "        c = torch.ops.aten.neg.default(a)",
        "        d = torch.ops.aten.cat.default([c, b",
        "        e = torch.ops.aten.neg.default(b)",
        "        return (d,)",
    )
    assert node(graph, "c").live
    assert not node(graph, "e").live
    assert graph.outputs == ("d",)


def test_without_return_nothing_is_called_dead() -> None:
    graph = body("        c = torch.ops.aten.neg.default(a)", "        d = torch.ops.aten.neg.default(b)")
    assert all(item.live for item in graph.nodes)
    assert graph.outputs == ()
    (problem,) = graph.artifact.problems
    assert (problem.location, problem.message) == (Location("fx.py", 4, 42), "expected `return` before the end")


def test_an_open_bracket_at_the_end_is_named_where_it_begins() -> None:
    graph = body("        c = torch.ops.aten.neg.default(a)", "        return (", "            c,")
    assert [problem.location.line for problem in graph.artifact.problems] == [4, 4]
    assert node(graph, "c").live


@pytest.mark.parametrize(
    "text", ["op0: SchedulerNode(ComputedBuffer)\nop0.writes = []\n", "def f(x):\n", "{}", "\x00\xff"]
)
def test_other_files_are_problems_not_graphs(text: str) -> None:
    assert parse(text, "fx.py").artifact.state is ArtifactState.PARTIAL


def test_an_empty_file_is_empty() -> None:
    assert parse("\n", "fx.py").artifact.state is ArtifactState.EMPTY


def test_deeply_nested_classes_do_not_recurse_without_end() -> None:
    lines = [" " * depth + "class x(torch.nn.Module):" for depth in range(2000)]
    assert parse("\n".join(lines), "fx.py").artifact.problems


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "stride", "device"),
    [
        ("f32[8, 32]", "torch.float32", (8, 32), None, None),
        ("f32[8, 32][32, 1]cuda:0", "torch.float32", (8, 32), (32, 1), "cuda:0"),
        ("i64[]", "torch.int64", (), None, None),
        ("b8[s33*s77, Max(1, s0)]", "torch.bool", ("s33*s77", "Max(1, s0)"), None, None),
        ("f8e4m3fn[4]cpu", "torch.float8_e4m3fn", (4,), None, "cpu"),
        ("DTensor(bf16[8][1]cuda:1, S(0))", "torch.bfloat16", (8,), (1,), "cuda:1"),
        ("q7[3]", "q7", (3,), None, None),
        ("Sym(s33)", None, None, None, None),
        ("f32[8", None, None, None, None),
        ("f32[8]]", None, None, None, None),
    ],
)
def test_annotations(text: str, dtype: str | None, shape: object, stride: object, device: str | None) -> None:
    read = parse_annotation(text)
    assert (read.dtype, read.shape, read.stride, read.device) == (dtype, shape, stride, device)


@pytest.mark.parametrize(
    ("comment", "site"),
    [
        ("# File: C:\\u\\f.py:7 in f, code: a: int = b", SourceSite("C:\\u\\f.py", 7, "f", "a: int = b")),
        ("# File: f.py:7 in <lambda>, code: x", SourceSite("f.py", 7, "<lambda>", "x")),
        ("# File: /a in b/f.py:7, code: x", SourceSite("/a in b/f.py", 7, None, "x")),
        ("# File: f.py:x in f, code: x", None),
        ("# No stacktrace found for following nodes", None),
    ],
)
def test_source_comments(comment: str, site: SourceSite | None) -> None:
    assert source_site(comment) == site


@given(st.text(alphabet=st.sampled_from(list("ab_.=()[]{}'\";:,# \n\\0+")) | st.characters(), max_size=200))
def test_any_text_gives_a_graph(text: str) -> None:
    graph = parse("class <lambda>(torch.nn.Module):\n    def forward(self, a):\n        " + text, "fx.py")
    lines = graph.artifact.lines
    assert all(1 <= problem.location.line <= max(lines, text.count("\n") + 3) for problem in graph.artifact.problems)


@given(st.lists(st.integers(0, 10**6), max_size=5), st.lists(st.integers(0, 10**6), max_size=5))
def test_printed_shapes_come_back(shape: list[int], stride: list[int]) -> None:
    read = parse_annotation(f"f16{shape}{stride}cpu")
    assert (read.shape, read.stride) == (tuple(shape), tuple(stride))
