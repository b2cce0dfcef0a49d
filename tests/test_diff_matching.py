"""How the parts of two graphs find each other: nodes, loop bodies, kernels, groups."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.analyze import analyze
from analyzer.diff.bodies import canonical_body, readable_body
from analyzer.diff.compare import diff_graphs
from analyzer.diff.fx_matching import match_fx
from analyzer.diff.kernel_text import canonical_kernel, erased, hinted_loops
from analyzer.diff.layers.scheduling import _longest_rise
from analyzer.diff.loops import merged_loops
from analyzer.diff.records import Change, Kind, Layer
from analyzer.diff.regroup import Regrouping, regroupings
from analyzer.diff.repeats import collapse
from analyzer.diff.symbols import renamed
from analyzer.facts import BufferFact, GraphFacts, GroupFact
from analyzer.model import (
    Artifact,
    ArtifactState,
    Block,
    CompiledGraph,
    FxGraph,
    FxNode,
    KernelDef,
    KernelParam,
    LoopBody,
    Statement,
)

# ---------------------------------------------------------------------------------------------------------- FX nodes


def given_input(name: str, *shape: int) -> FxNode:
    return FxNode(name, "placeholder", name, dtype="torch.float32", shape=shape or (8,))


def call(name: str, target: str, *inputs: str, args: tuple[str, ...] | None = None) -> FxNode:
    shape = (8,)
    return FxNode(name, "call_function", target, args or inputs, (), inputs, dtype="torch.float32", shape=shape)


def matched(old: list[FxNode], new: list[FxNode]) -> dict[str, str]:
    return match_fx(old, new, ((old[-1].name,), (new[-1].name,))).to_new


def chain(*targets: str, start: str = "x") -> list[FxNode]:
    nodes = [given_input(start)]
    for position, target in enumerate(targets):
        nodes.append(call(f"{target}_{position}", target, nodes[-1].name))
    return nodes


def test_names_do_not_matter() -> None:
    old = [given_input("x"), call("a", "cos", "x"), call("b", "sin", "a")]
    new = [given_input("x"), call("b", "cos", "x"), call("a", "sin", "b")]
    assert matched(old, new) == {"x": "x", "a": "b", "b": "a"}


def test_an_op_in_the_middle_leaves_the_rest_matched() -> None:
    old, new = chain("cos", "sin", "exp", "log"), chain("cos", "sin", "neg", "exp", "log")
    assert matched(old, new) == {"x": "x", "cos_0": "cos_0", "sin_1": "sin_1", "exp_2": "exp_3", "log_3": "log_4"}


def test_equal_layers_match_in_their_places() -> None:
    """A dropped first layer must not shift the other ones."""
    old, new = chain(*("mm", "relu") * 3), chain("relu", *("mm", "relu") * 2)
    assert matched(old, new)["mm_4"] == "mm_3"
    assert matched(old, new)["relu_5"] == "relu_4"


def test_inputs_whose_names_shifted_match_by_their_use() -> None:
    old = [given_input("arg0_1"), given_input("arg1_1"), call("mul", "mul", "arg0_1", "arg1_1")]
    old.append(call("out", "cat", "mul", "arg1_1"))
    new = [given_input("arg0_1"), given_input("arg1_1"), given_input("arg2_1"), call("mul", "mul", "arg1_1", "arg2_1")]
    new += [call("out", "cat", "mul", "arg2_1")]
    assert matched(old, new) == {"arg0_1": "arg1_1", "arg1_1": "arg2_1", "mul": "mul", "out": "out"}


def test_an_op_in_the_place_of_another_is_its_counterpart() -> None:
    assert matched(chain("cos", "sin", "exp"), chain("cos", "tan", "exp"))["sin_1"] == "tan_1"


def test_a_given_pair_stays() -> None:
    old, new = chain("cos", "cos"), chain("cos", "cos")
    assert match_fx(old, new, given={"cos_0": "cos_1"}).to_new["cos_0"] == "cos_1"


@st.composite
def graphs(draw: st.DrawFn) -> list[FxNode]:
    nodes = [given_input("x"), given_input("y", 8, 8)]
    for position in range(draw(st.integers(1, 12))):
        inputs = draw(st.lists(st.sampled_from([node.name for node in nodes]), min_size=1, max_size=2))
        nodes.append(call(f"n{position}", draw(st.sampled_from(["add", "mul", "sin"])), *inputs))
    return nodes


@given(graphs(), st.integers(1, 50))
def test_every_node_finds_its_equal(nodes: list[FxNode], shift: int) -> None:
    """However the nodes are named, two graphs of one structure match wholly and differ in nothing."""
    names = {node.name: node.name if node.op == "placeholder" else f"m{shift + i}" for i, node in enumerate(nodes)}
    renamed = [
        replace(node, name=names[node.name], args=inputs, inputs=inputs)
        for node in nodes
        for inputs in [tuple(names[name] for name in node.inputs)]
    ]
    assert len(matched(nodes, renamed)) == len(nodes)
    assert fx_changes(nodes, renamed) == []


def facts(nodes: list[FxNode]) -> GraphFacts:
    artifact = Artifact("fx_graph_transformed.py", ArtifactState.PARSED)
    fx = FxGraph(artifact, tuple(nodes), (nodes[-1].name,))
    return analyze(CompiledGraph("model__0", "inference", "model__0", fx=fx))


def fx_changes(old: list[FxNode], new: list[FxNode]) -> list[Change]:
    return [change for change in diff_graphs(facts(old), facts(new)).changes if change.layer == Layer.FX]


def test_each_edit_of_a_node_is_told_by_its_name() -> None:
    old = chain("cos", "sin", "exp")
    assert [c.aspect for c in fx_changes(old, chain("cos", "tan", "exp"))] == ["target"]
    wider = [*old[:3], replace(old[3], shape=(16,))]
    (shape,) = fx_changes(old, wider)
    assert (shape.aspect, shape.detail) == ("shape", "[8] → [16]")
    (dtype,) = fx_changes(old, [*old[:3], replace(old[3], dtype="torch.float16")])
    assert (dtype.aspect, dtype.detail) == ("dtype", "float32 → float16")
    (literal,) = fx_changes(old, [*old[:3], replace(old[3], args=("sin_1", "2"))])
    assert (literal.aspect, literal.detail) == ("arguments", "exp(sin_1) → exp(sin_1, 2)")


def resized(nodes: list[FxNode], shape: tuple[int, ...]) -> list[FxNode]:
    return [replace(node, shape=shape, args=(*node.args, str(list(shape)))) for node in nodes]


def test_what_another_shape_entails_is_one_change() -> None:
    """The input tells itself; that each node restates its shape as an argument, as views do, says nothing more."""
    old = chain("aten.view.default", "cos", "sin")
    new = resized(old, (16,))
    first, following = fx_changes(resized(old, (8,)), new)
    assert (first.aspect, first.old.ids, first.detail) == ("shape", ("x",), "[8] → [16]")
    assert (following.aspect, following.detail) == ("shapes", "[8] → [16]")
    assert following.old.ids == ("aten.view.default_0", "cos_1", "sin_2")


def test_a_dtype_follows_only_when_an_argument_becomes_the_same() -> None:
    old = chain("cos", "to", "sin")
    dtypes = dict(zip((node.name for node in old), ("float16", "float16", "int8", "int8"), strict=True))
    told = fx_changes(old, [replace(node, dtype=f"torch.{dtypes[node.name]}") for node in old])
    assert [(change.aspect, change.old.ids) for change in told] == [
        ("dtype", ("x",)),
        ("dtype", ("to_1",)),
        ("dtypes", ("cos_0", "sin_2")),
    ]


def test_a_shape_that_nothing_explains_is_told() -> None:
    """A literal decides the size, and then what reads it follows."""
    old, new = ([given_input("x"), call("f", "full", args=(size,)), call("s", "sin", "f")] for size in ("[8]", "[16]"))
    wider = [new[0], *(replace(node, shape=(16,)) for node in new[1:])]
    assert [(change.aspect, change.old.ids) for change in fx_changes(old, wider)] == [
        ("shape", ("f",)),
        ("shapes", ("s",)),
    ]


def test_sums_of_symbols_count_without_their_order() -> None:
    """Inductor sorts by name, and names are arbitrary: `s0*s1 - 1` is `s27*s77 - 1` with `s77` first."""
    assert renamed("s0*s1 - 1", {"s0": "s$0", "s1": "s$1"}) == renamed("s27*s77 - 1", {"s77": "s$0", "s27": "s$1"})
    assert renamed("s0 - s1", {"s0": "s$0", "s1": "s$1"}) != renamed("s0 - s1", {"s0": "s$1", "s1": "s$0"})


def test_swapped_operands_are_a_difference() -> None:
    old = [given_input("x"), given_input("y"), call("sub", "sub", "x", "y")]
    (change,) = fx_changes(old, [*old[:2], call("sub", "sub", "y", "x")])
    assert (change.aspect, change.detail) == ("inputs", "sub(x, y) → sub(y, x)")


def test_swapped_operands_of_a_commutative_operator_are_none() -> None:
    old = [given_input("x"), call("a", "aten.sin.default", "x"), call("sum", "aten.add.Tensor", "x", "a")]
    new = [*old[:2], call("sum", "aten.add.Tensor", "a", "x")]
    assert fx_changes(old, new) == []
    scaled = replace(old[2], kwargs=(("alpha", "2"),)), replace(new[2], kwargs=(("alpha", "2"),))
    assert [change.aspect for change in fx_changes([*old[:2], scaled[0]], [*new[:2], scaled[1]])] == ["inputs"]


def test_what_a_decomposition_puts_in_the_place_of_an_op_is_one_change() -> None:
    """Twice, between matched neighbours: each time with its own nodes."""
    old, new = chain("mm", "silu", "mm", "silu", "out"), chain("mm", "neg", "exp", "mm", "neg", "exp", "out")
    first, second = fx_changes(old, new)
    assert (first.kind, first.old.ids, first.new.ids) == (Kind.CHANGED, ("silu_1",), ("neg_1", "exp_2"))
    assert (second.kind, second.old.ids, second.new.ids) == (Kind.CHANGED, ("silu_3",), ("neg_4", "exp_5"))
    assert [line.split(" = ")[0] for line in first.new.code] == ["neg_1", "exp_2"]
    assert [entry.count for entry in collapse([first, second])] == [2]


def test_edits_that_shift_the_numbers_of_names_do_not_shift_the_pairs() -> None:
    """The one line edited in each of three layers: `mm_2` of the old graph is `mm_3` of the new one, not `mm_2`."""
    old, new = chain(*("mm", "relu") * 3), chain("neg", *("mm", "gelu", "neg") * 3)
    pairs = matched(old, new)
    assert [pairs[name] for name in ("mm_0", "mm_2", "mm_4")] == ["mm_1", "mm_4", "mm_7"]
    back = matched(new, old)
    assert {other: one for one, other in back.items()} == pairs


def test_one_constant_does_not_join_what_was_added_for_it() -> None:
    old = [given_input("x"), call("a", "sin", "x"), call("b", "cos", "x"), call("out", "cat", "a", "b")]
    full = replace(call("full", "full"), args=("[8]", "1"))
    new = [given_input("x"), full, call("c", "exp", "a", "full"), call("d", "log", "b", "full")]
    new[1:1] = old[1:3]
    new.append(call("out", "cat", "c", "d"))
    assert sorted(change.new.ids for change in fx_changes(old, new) if change.kind == Kind.ADDED) == [
        ("c",),
        ("d",),
        ("full",),
    ]


def test_an_added_op_does_not_change_its_reader() -> None:
    (change,) = fx_changes(chain("cos", "exp"), chain("cos", "sin", "exp"))
    assert (change.kind, change.new.ids) == (Kind.ADDED, ("sin_1",))


def test_the_node_that_an_assertion_names_is_no_difference() -> None:
    old = [given_input("x"), call("ge_1", "ge", "x")]
    new = [given_input("x"), call("ge", "ge", "x")]
    message = "\"Runtime assertion failed for expression u0 >= 0 on node 'ge_1'\""
    old.append(call("check", "_assert_scalar", "ge_1", args=("ge_1", message)))
    new.append(call("check", "_assert_scalar", "ge", args=("ge", message)))
    assert fx_changes(old, new) == []


def test_dead_nodes_do_not_count() -> None:
    nodes = chain("cos", "sin")
    dead = replace(call("unused", "exp", "x"), live=False)
    assert fx_changes(nodes, [*nodes[:2], dead, nodes[2]]) == []


# -------------------------------------------------------------------------------------------------------- loop bodies

BODY = (
    Statement("get_index", "get_index", ("index0",)),
    Statement("load", "load", ("arg0_1", "get_index")),
    Statement("cos", "cos", ("load",)),
    Statement("load_1", "load", ("arg1_1", "get_index")),
    Statement("add", "add", ("cos", "load_1")),
    Statement("store", "store", ("buf0", "get_index", "add", "None")),
    Statement(None, "return", ("store",)),
)


def body(*statements: Statement, index: str = "2048*p0 + p1", names: tuple[str, str] = ("p0", "p1")) -> LoopBody:
    return LoopBody(((names[0], 512), (names[1], 2048)), (("index0", index),), (Block("body", statements),))


def canonical(loops: LoopBody) -> object:
    return canonical_body(loops, lambda name: name, {})


def test_names_order_and_commuted_operands_of_a_body_do_not_count() -> None:
    other = (
        Statement("i", "get_index", ("index0",)),
        Statement("second", "load", ("arg1_1", "i")),
        Statement("first", "load", ("arg0_1", "i")),
        Statement("c", "cos", ("first",)),
        Statement("a", "add", ("second", "c")),
        Statement(None, "store", ("buf0", "i", "a", "None")),
    )
    assert canonical(body(*BODY)) == canonical(body(*other, index="2048*q3 + q7", names=("q3", "q7")))


@pytest.mark.parametrize(
    ("at", "changed"),
    [
        (2, Statement("cos", "sin", ("load",))),
        (3, Statement("load_1", "load", ("arg2_1", "get_index"))),
        (4, Statement("add", "sub", ("cos", "load_1"))),
        (5, Statement("store", "store", ("buf0", "get_index", "add", "atomic_add"))),
    ],
)
def test_what_a_body_computes_counts(at: int, changed: Statement) -> None:
    assert canonical(body(*BODY)) != canonical(body(*BODY[:at], changed, *BODY[at + 1 :]))


def test_operands_that_do_not_commute_count() -> None:
    one = body(*BODY[:4], Statement("add", "sub", ("cos", "load_1")), *BODY[5:])
    other = body(*BODY[:4], Statement("add", "sub", ("load_1", "cos")), *BODY[5:])
    assert canonical(one) != canonical(other)


def test_transposed_access_counts() -> None:
    assert canonical(body(*BODY)) != canonical(body(*BODY, index="p0 + 512*p1"))


def test_an_indirect_index_is_the_value_that_it_comes_from() -> None:
    def gather(first: str, second: str) -> LoopBody:
        statements = (
            Statement("load", "load", (first, "index0")),
            Statement(None, "set_indirect", ("set_indirect0", "load")),
            Statement("i", "get_index", ("index1",)),
            Statement("value", "load", (second, "i")),
            Statement("store", "store", ("buf0", "i", "value", "None")),
        )
        return LoopBody((("p0", 4),), (("index0", "p0"), ("index1", "indirect0")), (Block("body", statements),))

    assert canonical(gather("arg0_1", "arg1_1")) == canonical(gather("arg0_1", "arg1_1"))
    assert canonical(gather("arg0_1", "arg1_1")) != canonical(gather("arg2_1", "arg1_1"))


def test_a_masked_part_counts() -> None:
    def masked(value: str) -> LoopBody:
        outer = (
            Statement("m", "masked_subblock", ("masked_subblock1", "mask", "0.0")),
            Statement("store", "store", ("buf0", "index0", "m", "None")),
        )
        inner = (Statement("c", "constant", (value, "torch.float32")), Statement(None, "return", ("c",)))
        return LoopBody((), (), (Block("body", outer), Block("masked_subblock1", inner)))

    assert canonical(masked("1.0")) == canonical(masked("1.0"))
    assert canonical(masked("1.0")) != canonical(masked("2.0"))


def test_swapped_operands_read_alike() -> None:
    """Between two versions they would be half of the lines of a body that differs elsewhere."""
    loads = [Statement(name, "load", (f"arg{at}_1", "index0")) for at, name in enumerate(("load", "load_1"))]
    one, other = (body(*loads, Statement("add", "add", args)) for args in (("load", "load_1"), ("load_1", "load")))
    assert readable_body(one, lambda name: name) == readable_body(other, lambda name: name)


def test_a_body_reads_as_short_lines() -> None:
    assert readable_body(body(*BODY), lambda name: name) == (
        "for p0 in 1048576:",
        "v0 = load(arg0_1, [p0])",
        "v1 = cos(v0)",
        "v2 = load(arg1_1, [p0])",
        "v3 = add(v1, v2)",
        "store(buf0, [p0], v3)",
    )


def loops(sizes: dict[str, int | str], *indices: str) -> LoopBody:
    """A body that copies from the first index to the others, in order."""
    steps = [Statement("value", "load", ("arg0_1", "index0"))]
    steps += [Statement(None, "store", ("buf0", f"index{n}", "value", "None")) for n in range(1, len(indices))]
    named = tuple((f"index{n}", text) for n, text in enumerate(indices))
    return LoopBody(tuple(sizes.items()), named, (Block("body", tuple(steps)),))


SAME_LOOPS = {
    "two are one": (loops({"p0": 64, "p1": 8}, "8*p0 + p1", "8*p0 + p1"), loops({"p0": 512}, "p0", "p0")),
    "a row is read again": (
        loops({"p0": 4, "p1": 8, "p2": 16}, "128*p0 + 16*p1 + p2", "8*p0 + p1", "p2"),
        loops({"p0": 32, "p1": 16}, "16*p0 + p1", "p0", "p1"),
    ),
    "outer steps stay": (
        loops({"p0": 3, "p1": 2, "p2": 5}, "100*p0 + 5*p1 + p2 + 7", "p0 + 15*p1 + 3*p2"),
        loops({"z0": 3, "z1": 10}, "100*z0 + z1 + 7", "z0 + 3*z1"),
    ),
    "a loop of one": (loops({"p0": 1, "p1": 8}, "8*p0 + p1", "p1"), loops({"p0": 8}, "p0", "p0")),
    "symbols": (loops({"p0": "s3", "p1": "s7"}, "p0*s7 + p1", "p0*s7 + p1"), loops({"p0": "s3*s7"}, "p0", "p0")),
    "an offset": (loops({"p0": 2, "p1": 3}, "3*p0 + p1 - 1", "3*p0 + p1"), loops({"p0": 6}, "p0 - 1", "p0")),
}
OTHER_LOOPS = {
    "transposed": (loops({"p0": 64, "p1": 64}, "64*p0 + p1", "p0 + 64*p1"), loops({"p0": 4096}, "p0", "p0")),
    "another order": (loops({"p0": 8, "p1": 64}, "p0 + 8*p1", "p0 + 8*p1"), loops({"p0": 512}, "p0", "p0")),
    "padded rows": (loops({"p0": 8, "p1": 8}, "8*p0 + p1", "10*p0 + p1"), loops({"p0": 64}, "p0", "p0")),
    "inside a division": (loops({"p0": 8, "p1": 8}, "(p0//2)", "8*p0 + p1"), loops({"p0": 64}, "(p0//2)", "p0")),
    "fewer": (loops({"p0": 8, "p1": 8}, "8*p0 + p1", "8*p0 + p1"), loops({"p0": 32}, "p0", "p0")),
}


@pytest.mark.parametrize(("one", "other"), SAME_LOOPS.values(), ids=SAME_LOOPS)
def test_loops_that_continue_each_other_are_one(one: LoopBody, other: LoopBody) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), OTHER_LOOPS.values(), ids=OTHER_LOOPS)
def test_loops_that_do_not_stay_apart(one: LoopBody, other: LoopBody) -> None:
    assert canonical(one) != canonical(other)


@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 12), min_size=4, max_size=4), min_size=1, max_size=3),
)
def test_merged_loops_touch_the_same_places_in_the_same_order(sizes: list[int], steps: list[list[int]]) -> None:
    indices = [" + ".join(f"{step}*p{at}" for at, step in enumerate(row[: len(sizes)])) for row in steps]
    body = loops({f"p{at}": size for at, size in enumerate(sizes)}, *indices)
    assert visited(merged_loops(body)) == visited(body)


def visited(body: LoopBody) -> list[list[int]]:
    """What each index comes to, step by step through all loops."""
    names = [name for name, _ in body.ranges]
    steps = list(product(*(range(int(size)) for _, size in body.ranges)))
    return [[value(text, dict(zip(names, at, strict=True))) for at in steps] for _, text in body.indices]


def value(text: str, at: dict[str, int]) -> int:
    terms = (term.split("*") for term in text.split(" + "))
    return sum(prod(at[factor] if factor in at else int(factor) for factor in term) for term in terms)


# ------------------------------------------------------------------------------------------------------------ kernels

CPP = """
#include "/tmp/cache/ab/cabc.h"
extern "C"  void  kernel(const float* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=static_cast<int64_t>(1L))
        {
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(4L); x1+=static_cast<int64_t>(1L))
            {
                {
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 4L*x0)];
                    auto tmp1 = in_ptr1[static_cast<int64_t>(x1)];
                    auto tmp2 = std::cos(tmp0);
                    auto tmp3 = decltype(tmp2)(tmp2 + tmp1);
                    out_ptr0[static_cast<int64_t>(x1 + 4L*x0)] = tmp3;
                }
            }
        }
    }
}
"""
TRITON = """
@triton_heuristics.pointwise(size_hints={'x': 16}, inductor_meta={'kernel_name': 'triton_poi_fused_cos_0'})
@triton.jit
def triton_poi_fused_cos_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 16
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl.load(in_ptr0 + (16 + x0), xmask)
    tmp2 = tl_math.cos(tmp0)
    tmp3 = tmp2 + tmp1
    tl.store(out_ptr0 + (x0), tmp3, xmask)
"""


def kernel(source: str, backend: str = "cpp") -> KernelDef:
    params = tuple(KernelParam(name, "float*") for name in ("in_ptr0", "in_ptr1", "out_ptr0") if name in source)
    return KernelDef("kernel_0", backend, params, source=source)


def edited(source: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


CPP_LINES = ["auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 4L*x0)];", "auto tmp1 = in_ptr1[static_cast<int64_t>(x1)];"]

SAME_CPP = {
    "renamed": edited(CPP, ("tmp0", "tmp10"), ("tmp2", "tmp9")),
    "reordered": edited(CPP, (CPP_LINES[0], "@"), (CPP_LINES[1], CPP_LINES[0]), ("@", CPP_LINES[1])),
    "commuted": edited(CPP, ("(tmp2 + tmp1)", "(tmp1 + tmp2)")),
    "other path": edited(CPP, ("/tmp/cache/ab/cabc.h", "/var/x/y.h")),
    "comment": edited(CPP, ("    {\n        #pragma", "    // [Provenance debug handles] 7\n    {\n        #pragma")),
}
OTHER_CPP = {
    "another op": edited(CPP, ("std::cos", "std::sin")),
    "another operand": edited(CPP, ("std::cos(tmp0)", "std::cos(tmp1)")),
    "transposed": edited(CPP, ("(x1 + 4L*x0)]", "(x0 + 4L*x1)]")),
    "another size": edited(CPP, ("x1<static_cast<int64_t>(4L)", "x1<static_cast<int64_t>(3L)")),
    "another input": edited(CPP, ("in_ptr1[", "in_ptr0[")),
    "parallel": edited(CPP, ("#pragma GCC ivdep", "#pragma omp for")),
}


@pytest.mark.parametrize("source", SAME_CPP.values(), ids=SAME_CPP)
def test_equal_kernels(source: str) -> None:
    assert canonical_kernel(kernel(CPP), {}) == canonical_kernel(kernel(source), {})


@pytest.mark.parametrize("source", OTHER_CPP.values(), ids=OTHER_CPP)
def test_unequal_kernels(source: str) -> None:
    assert canonical_kernel(kernel(CPP), {}) != canonical_kernel(kernel(source), {})


MASKED = "auto tmp3 = decltype(tmp2)::blendv(tmp2, tmp1, tmp0.template cast<float,1>());"
SPELLED = {
    "masks": (MASKED, MASKED.replace("tmp0.template cast<float,1>()", "inductor_vec_mask_cast<float,1>(tmp0)")),
    "wrapping sums": (
        "auto tmp3 = int64_t(tmp0 + tmp1);",
        "auto tmp3 = int64_t(static_cast<std::make_unsigned_t<int64_t>>(tmp0) + tmp1);",
    ),
    "unrolling": ("#pragma unroll 16", "#pragma GCC unroll 16"),
}


@pytest.mark.parametrize(("older", "newer"), SPELLED.values(), ids=SPELLED)
def test_what_versions_spell_otherwise_is_equal(older: str, newer: str) -> None:
    one, other = (kernel(edited(CPP, (CPP_LINES[0], f"{CPP_LINES[0]}\n{line}"))) for line in (older, newer))
    assert canonical_kernel(one, {}) == canonical_kernel(other, {})
    assert canonical_kernel(one, {}) != canonical_kernel(kernel(CPP), {})


def test_a_hint_to_the_compiler_is_less_than_another_body() -> None:
    hintless = kernel(edited(CPP, ("#pragma GCC ivdep\n", "\n")))
    assert canonical_kernel(kernel(CPP), {}) != canonical_kernel(hintless, {})
    assert canonical_kernel(kernel(CPP), {}, hints=False) == canonical_kernel(hintless, {}, hints=False)
    assert [hinted_loops(one) for one in (kernel(CPP), hintless)] == [1, 0]


def test_pointers_are_what_they_point_to() -> None:
    swapped = edited(CPP, ("in_ptr0[", "@["), ("in_ptr1[", "in_ptr0["), ("@[", "in_ptr1["))
    one, other = kernel(CPP), kernel(swapped)
    assert canonical_kernel(one, {}) != canonical_kernel(other, {})
    assert canonical_kernel(one, {"in_ptr0": "x", "in_ptr1": "y"}) == canonical_kernel(
        other, {"in_ptr0": "y", "in_ptr1": "x"}
    )
    assert erased(one) == erased(other)


def test_triton_kernels() -> None:
    def computes(source: str) -> object:
        return canonical_kernel(kernel(source, "triton"), {})

    renamed = edited(TRITON, ("triton_poi_fused_cos_0", "triton_poi_fused_5"), ("tmp0", "tmp7"), ("'x': 16", "'x': 32"))
    assert computes(TRITON) == computes(renamed)
    assert computes(TRITON) != computes(edited(TRITON, ("tl_math.cos", "tl_math.sin")))
    assert computes(TRITON) != computes(edited(TRITON, ("(16 + x0)", "(8 + x0)")))


def test_hostile_code_ends() -> None:
    """Deep, long or endless text costs time by its length."""
    for source in ("{\n" * 30_000, " " * 200_000 + "//", "a" * 200_000 + " = !", "x_1" * 60_000):
        for backend in ("cpp", "triton"):
            canonical_kernel(kernel(f'extern "C" void kernel() {{\n{source}', backend), {})
    deeper = "\n".join(" " * depth + "if x:" for depth in range(2_000))
    assert canonical_kernel(kernel(f"def f(x):\n{deeper}", "triton"), {})


def test_a_subblock_that_calls_itself_ends() -> None:
    again = Statement("m", "masked_subblock", ("masked_subblock1", "mask", "0.0"))
    loops = LoopBody((), (), (Block("body", (again,)), Block("masked_subblock1", (again,))))
    assert canonical(loops) == canonical(loops)


@given(st.text(alphabet="for(int x0={}; )\n\t#tmp0_+*\"'", max_size=200))
def test_any_text_is_a_kernel_equal_to_itself(text: str) -> None:
    for backend in ("cpp", "triton"):
        assert canonical_kernel(kernel(text, backend), {}) == canonical_kernel(kernel(text, backend), {})


# ------------------------------------------------------------------------------------------------------------- groups


def test_splits_merges_and_regroupings() -> None:
    old = {"a": "g1", "b": "g1", "c": "g2", "d": "g3", "e": "g4", "f": "g4", "h": "g5"}
    new = {"a": "k1", "b": "k2", "c": "k3", "d": "k3", "e": "k4", "f": "k5", "h": "k5"}
    assert list(regroupings(old, new, {name: name for name in old})) == [
        Regrouping(("g1",), ("k1", "k2")),
        Regrouping(("g2", "g3"), ("k3",)),
        Regrouping(("g4", "g5"), ("k4", "k5")),
    ]


@given(st.permutations(range(8)))
def test_what_stays_in_order_is_as_long_as_can_be(sequence: list[int]) -> None:
    kept = [sequence[at] for at in _longest_rise(sequence)]
    assert kept == sorted(kept)
    longest = [1] * len(sequence)
    for at, value in enumerate(sequence):
        longest[at] += max((longest[i] for i in range(at) if sequence[i] < value), default=0)
    assert len(kept) == max(longest)


@given(st.permutations(range(7)))
def test_another_order_names_the_fewest_groups_and_mirrors(order: list[int]) -> None:
    """Groups of one buffer each, held by matched nodes, run in another order."""
    nodes = [given_input("x"), *(call(f"n{i}", f"op{i}", "x") for i in range(7))]
    base = facts(nodes)
    buffers = tuple(BufferFact(f"buf{i}", f"op{i}", "ComputedBuffer", fx_node=f"n{i}") for i in range(7))
    groups = tuple(GroupFact(f"op{i}", "SchedulerNode", (f"op{i}",), (f"buf{i}",)) for i in range(7))
    old = replace(base, buffers=buffers, groups=groups)
    new = replace(old, groups=tuple(groups[i] for i in order))
    there, back = (diff_graphs(*pair).changes for pair in ((old, new), (new, old)))
    assert [change.mirrored() for change in back] == list(there)
    moved = sum(len(change.old.ids) for change in there)
    assert moved == 7 - len(_longest_rise(order))
    assert bool(there) == (order != sorted(order))
