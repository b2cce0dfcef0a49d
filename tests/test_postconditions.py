"""What each postcondition counts, on small graphs written here and on real pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.ablations import ABLATIONS
from analyzer.analyze import analyze
from analyzer.audit.postconditions import POSTCONDITIONS, Arm
from analyzer.audit.postconditions.further import count_padded, count_prologues
from analyzer.audit.postconditions.fusion import (
    count_epilogues,
    count_fused,
    count_horizontal,
    count_vertical,
    parts,
)
from analyzer.audit.postconditions.inlining import count_inlined
from analyzer.audit.postconditions.layout import iteration, measure_loops, measure_schedule
from analyzer.audit.postconditions.memory import count_in_place, count_reuse, count_unplanned
from analyzer.audit.postconditions.outer_loop import shared_inner_loops
from analyzer.audit.postconditions.record import Count, joined
from analyzer.audit.postconditions.rewriting import made, measure_patterns, measure_rewritten, undone
from analyzer.compare.effective import EffectiveConfig, Source, effective_config
from analyzer.facts import BufferFact, Fate, GraphFacts, NodeFact
from analyzer.load import load_run
from analyzer.model import (
    Allocation,
    Artifact,
    ArtifactState,
    CompiledGraph,
    Dep,
    DumpBuffer,
    DumpNode,
    FxNode,
    IrDump,
    KernelCall,
    KernelDef,
    KernelParam,
    Layout,
    LoopBody,
    OutputCode,
    Rename,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ablations"
READ = Artifact("file", ArtifactState.PARSED)


def arm(graph: CompiledGraph | None = None, **facts: object) -> Arm:
    graph = graph or CompiledGraph("g", "inference", "")
    return Arm(GraphFacts(graph, **facts), EffectiveConfig(Source.NONE))  # type: ignore[arg-type]


def loaded(path: str) -> Arm:
    graph = load_run(FIXTURES / path).graphs[0]
    return Arm(analyze(graph), effective_config(graph))


def op(name: str, makes: str, *reads: str, inner: str = "ComputedBuffer", weak: str = "") -> DumpNode:
    deps = [Dep("MemoryDep", buffer) for buffer in reads] + ([Dep("WeakDep", weak)] if weak else [])
    return DumpNode(name, "SchedulerNode", (inner,), unmet=tuple(deps), buffers=(DumpBuffer(makes, inner, None),))


def group(node_class: str, *members: DumpNode) -> DumpNode:
    return DumpNode("_".join(member.name for member in members), node_class, (), members=members)


def post(*nodes: DumpNode) -> Arm:
    return arm(CompiledGraph("g", "inference", "", post=IrDump(READ, nodes)))


FUSED = "FusedSchedulerNode"
FOREACH = "ForeachKernelSchedulerNode"


# ----------------------------------------------------------------------------------------------------------- registry


def test_every_ablation_has_a_postcondition_and_the_other_way_round() -> None:
    assert set(POSTCONDITIONS) == {ablation.name for ablation in ABLATIONS}


@pytest.mark.parametrize("entry", POSTCONDITIONS.values(), ids=lambda entry: entry.name)
def test_an_entry_says_what_it_needs_and_counts(entry: object) -> None:
    post = POSTCONDITIONS[entry.name]  # type: ignore[attr-defined]
    assert post.name == entry.name  # type: ignore[attr-defined]
    assert post.needs
    assert set(post.needs) <= {"fx", "pre", "post", "code"}
    assert post.counted.islower() or "FX" in post.counted or "CUDA" in post.counted or "C++" in post.counted
    assert not post.satisfied.endswith(".")
    assert not post.next_step or post.next_step.endswith(".")


def test_a_name_list_is_cut_short() -> None:
    assert joined(("a", "b")) == "a, b"
    assert joined(("a", "b", "c", "d", "e"), 3) == "a, b, c and 2 more"


# ------------------------------------------------------------------------------------------------------------- fusion


def test_groups_of_several_members_are_fused_and_foreach_groups_count() -> None:
    one, two, three, four = (op(f"op{i}", f"buf{i}") for i in range(4))
    dump = post(op("op9", "buf9"), group(FUSED, one, two), group(FOREACH, three, four))
    assert count_fused(dump).left == ("op0_op1", "op2_op3")


def test_nodes_that_are_only_scheduled_together_are_not_fused() -> None:
    assert count_fused(post(group("GroupedSchedulerNode", op("op0", "buf0"), op("op1", "buf1")))).left == ()


def test_vertical_pairs_are_producer_and_consumer_of_one_group_and_an_order_alone_is_none() -> None:
    maker, reader, follower = op("op0", "buf0"), op("op1", "buf1", "buf0"), op("op2", "buf2", weak="buf0")
    assert count_vertical(post(group(FUSED, maker, reader, follower))).left == ("op0 -> op1",)
    assert count_vertical(post(maker, reader)).left == ()


def test_horizontal_parts_beyond_the_first_count_once_each() -> None:
    chain = (op("op0", "buf0"), op("op1", "buf1", "buf0"))
    siblings = (op("op2", "buf2"), op("op3", "buf3"))
    assert count_horizontal(post(group(FUSED, *chain))).least == 0
    assert count_horizontal(post(group(FUSED, *chain, *siblings))).least == 2
    assert count_horizontal(post(group(FOREACH, *siblings))).least == 0


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_joining_nodes_never_makes_more_parts(pairs: set[tuple[int, int]]) -> None:
    reads = {reader: [f"buf{maker}" for maker, other in pairs if other == reader] for reader in range(6)}
    leaves = tuple(op(f"op{i}", f"buf{i}", *reads[i]) for i in range(6))
    connected = parts(leaves)
    assert 1 <= connected <= 6
    assert connected >= 6 - len(pairs)
    assert parts(leaves[:3], leaves[3:]) <= parts(leaves[:3])


def test_an_epilogue_reads_the_template_and_a_prologue_is_read_by_it() -> None:
    template = op("op1", "buf1", "buf0", inner="TritonTemplateBuffer")
    before, after = op("op0", "buf0"), op("op2", "buf2", "buf1")
    epilogue, prologue = post(group(FUSED, template, after)), post(group(FUSED, before, template))
    assert (count_epilogues(epilogue).least, count_prologues(epilogue).least) == (1, 0)
    assert (count_epilogues(prologue).least, count_prologues(prologue).least) == (0, 1)


def test_only_the_code_shows_which_members_of_an_outer_loop_share_an_inner_loop() -> None:
    """softmax(x * 0.5): op0, op1 and op2 reduce the same input side by side in the base, each alone without."""
    base = [
        tuple(leaf.name for leaf in stored)
        for stored, _ in shared_inner_loops(loaded("cpu-2.13/baseline/softmax").facts)
    ]
    assert ("op0", "op1", "op2") in base
    assert count_horizontal(loaded("cpu-2.13/baseline/softmax")).least == 2
    assert count_horizontal(loaded("cpu-2.13/horizontal-fusion/softmax")).least == 0


# ----------------------------------------------------------------------------------------------------------- inlining


def fx(name: str, target: str, *inputs: str, live: bool = True) -> FxNode:
    kind = "placeholder" if target == "placeholder" else "call_function"
    return FxNode(name, kind, target, inputs=inputs, shape=(8,), live=live)


def fate(node: FxNode, what: Fate, buffer: str | None = None) -> NodeFact:
    return NodeFact(node, what, buffer)


def test_inlined_values_are_left_but_not_views_dead_nodes_or_results_taken_out_of_a_tuple() -> None:
    facts = (
        fate(fx("x", "placeholder"), Fate.INPUT),
        fate(fx("cos", "aten.cos.default", "x"), Fate.INLINED),
        fate(fx("view", "aten.view.default", "cos"), Fate.VIEW),
        fate(fx("getitem", "operator.getitem", "cos"), Fate.INLINED),
        fate(fx("dead", "aten.exp.default", "x", live=False), Fate.FOLDED),
        fate(fx("sin", "aten.sin.default", "view"), Fate.REALIZED, "buf0"),
    )
    assert count_inlined(arm(nodes=facts)) == Count(("cos",))


def test_a_value_that_reads_no_memory_stays_inlined_by_design() -> None:
    facts = (
        fate(fx("full", "aten.full.default"), Fate.INLINED),
        fate(fx("mul", "aten.mul.Tensor", "full"), Fate.INLINED),
        fate(fx("x", "placeholder"), Fate.INPUT),
        fate(fx("add", "aten.add.Tensor", "mul", "x"), Fate.INLINED),
    )
    assert count_inlined(arm(nodes=facts)).left == ("add",)


def test_a_buffer_that_stands_for_a_view_still_holds_the_only_value_that_it_computes() -> None:
    facts = (
        fate(fx("x", "placeholder"), Fate.INPUT),
        fate(fx("div", "aten.div.Tensor", "x"), Fate.INLINED),
        fate(fx("expand", "aten.expand.default", "div"), Fate.REALIZED, "buf0"),
    )
    held = BufferFact("buf0", "op0", "ComputedBuffer", fx_node="expand", origins=("div", "expand"))
    assert count_inlined(arm(nodes=facts, buffers=(held,))).least == 0


def test_an_unknown_fate_is_neither_left_nor_gone() -> None:
    count = count_inlined(
        arm(nodes=(fate(fx("x", "placeholder"), Fate.INPUT), fate(fx("f", "my.op", "x"), Fate.UNKNOWN)))
    )
    assert (count.least, count.most, count.unknown) == (0, 1, ("f",))


# -------------------------------------------------------------------------------------------------------------- memory


def wrapper(*steps: object, inputs: tuple[str, ...] = ()) -> Arm:
    kernel = KernelDef("k", "cpp", (KernelParam("in_out_ptr0", "float*"), KernelParam("in_ptr0", "const float*")))
    code = OutputCode(READ, kernels=(kernel,), steps=steps, inputs=inputs)  # type: ignore[arg-type]
    return arm(CompiledGraph("g", "inference", "", code=code))


def test_work_in_place_and_taking_over_freed_memory_print_alike_and_count_apart() -> None:
    code = wrapper(
        Rename("buf1", "buf0", "reuse"),
        KernelCall("k", "cpp", buffers=("buf1", "x")),
        Rename("buf5", "buf3", "reuse"),
    )
    assert count_in_place(code).left == ("buf1",)
    assert count_reuse(code).left == ("buf5",)


def test_overwriting_a_graph_input_is_not_inductors_reuse() -> None:
    assert count_in_place(wrapper(KernelCall("k", "cpp", buffers=("x", "y")), inputs=("x",))).left == ()


def test_allocations_outside_a_pool_are_unplanned() -> None:
    code = wrapper(Allocation("buf0", "empty_strided_cpu"), Allocation("buf1", "alloc_from_pool"))
    assert count_unplanned(code).left == ("buf0",)


# ----------------------------------------------------------------------------------------- order, layout, rewriting


def looped(name: str, ranges: tuple[int, ...], index: str) -> DumpNode:
    body = LoopBody(tuple((f"p{i}", size) for i, size in enumerate(ranges)), (("index0", index),), ())
    return DumpNode(name, "SchedulerNode", ("ComputedBuffer",), body=body)


def test_the_order_of_iteration_is_told_by_position_not_by_the_names_of_variables() -> None:
    other = LoopBody((("z0", 8), ("z1", 4)), (("index0", "4*z0 + z1"),), ())
    assert iteration(looped("op0", (8, 4), "4*p0 + p1")) == iteration(DumpNode("op0", "SchedulerNode", (), body=other))
    assert iteration(looped("op0", (8, 4), "4*p0 + p1")) != iteration(looped("op0", (4, 8), "p0 + 4*p1"))


def test_a_node_that_iterates_otherwise_is_found_whatever_its_number() -> None:
    base = post(looped("op0", (8, 4), "4*p0 + p1"), looped("op1", (8,), "p0"))
    ablated = post(looped("op0", (8,), "p0"), looped("op1", (4, 8), "p0 + 4*p1"))
    assert measure_loops(base, ablated)[0].left == ("op0",)
    assert measure_loops(base, base)[0].left == ()


def test_a_schedule_is_compared_in_order_and_only_between_equal_nodes() -> None:
    one, two, three = (op(f"op{i}", f"buf{i}") for i in range(3))
    assert measure_schedule(post(one, two, three), post(one, three, two))[0].left == ("op1", "op2")
    assert measure_schedule(post(one, two), post(one, three))[0].left == ()


def test_what_a_pass_rewrote_is_what_only_one_graph_has() -> None:
    base = arm(nodes=(fate(fx("addmm", "aten.addmm.default"), Fate.REALIZED),))
    ablated = arm(
        nodes=(fate(fx("mm", "aten.mm.default"), Fate.REALIZED), fate(fx("add", "aten.add.Tensor"), Fate.REALIZED))
    )
    assert measure_rewritten(undone)(base, ablated) == (Count(("mm", "add")), Count())
    assert measure_rewritten(made)(base, ablated) == (Count(("addmm",)), Count())
    assert measure_rewritten(undone)(base, base) == (Count(), Count())


def test_a_pass_that_only_adds_nodes_or_only_drops_some_is_seen() -> None:
    more = arm(
        nodes=(fate(fx("mm", "aten.mm.default"), Fate.REALIZED), fate(fx("cos", "aten.cos.default"), Fate.INLINED))
    )
    less = arm(nodes=(fate(fx("mm", "aten.mm.default"), Fate.REALIZED),))
    assert undone(more, less) == undone(less, more) == made(more, less) == ("cos",)


def test_prepacked_weights_are_left_whatever_the_pattern_matcher_does() -> None:
    packed = fate(fx("linear", "mkl._mkl_linear.default"), Fate.REALIZED)
    before, after = measure_patterns(arm(nodes=(packed,)), arm(nodes=(packed,)))
    assert (before.left, after.left) == (("linear",), ("linear",))


def test_padded_strides_leave_gaps_and_transposed_ones_do_not() -> None:
    def buffer(size: tuple[int, ...], stride: tuple[int, ...]) -> DumpBuffer:
        return DumpBuffer("buf0", "ComputedBuffer", Layout("FixedLayout", "", size=size, stride=stride))

    def padded(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
        node = DumpNode("op0", "SchedulerNode", (), buffers=(buffer(size, stride),))
        return count_padded(arm(CompiledGraph("g", "inference", "", pre=IrDump(READ, (node,))))).least

    assert padded((7, 30), (32, 1)) == 1
    assert padded((30, 7), (1, 30)) == 0
    assert padded((512, 1), (1, 512)) == 0
