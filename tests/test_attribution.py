"""Whose value each buffer holds, what each kernel computes: hand-reasoned cases, and accuracy against the compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.analyze.dead import GONE
from analyzer.facts import Evidence, Fate, GraphFacts, Storage
from analyzer.load import load_run
from analyzer.model import Location, Problem
from tests.accuracy import LEVELS, measure, row, without

FIXTURES = Path(__file__).parent.parent / "fixtures"
CUT_OFF = Problem(Location("ir_pre_fusion.txt", 9), "expected 'ops', found the end of the node")
CAPTURED = sorted(path for path in (FIXTURES / "captured").iterdir() if path.is_dir())


def facts_of(run: Path, graph: str = "", level: str = "bare") -> GraphFacts:
    """Facts of the graph whose name holds `graph`, with only a level's evidence."""
    return next(analyze(without(g, level)) for g in load_run(run).graphs if graph in g.name)


def facts_of_capture(run: str, graph: str) -> GraphFacts:
    """The same with our sidecar."""
    return next(analyze(g) for g in load_run(FIXTURES / "captured" / run).graphs if graph in g.name)


def fates(facts: GraphFacts) -> dict[str, Fate]:
    return {node.name: node.fate for node in facts.nodes}


def test_a_single_use_chain_is_inlined_into_its_output():
    facts = facts_of(FIXTURES / "captured" / "sin_cos_thresholds")
    cos, sin = facts.node("cos"), facts.node("sin")
    assert (cos.fate, cos.inlined_into, cos.kernels) == (Fate.INLINED, ("buf0",), ("cpp_fused_cos_sin_0",))
    assert (sin.fate, sin.buffer) == (Fate.REALIZED, "buf0")
    assert facts.buffer("buf0").origins == ("cos", "sin")
    assert facts.buffer("buf0").storage == Storage.OUTPUT
    assert facts.buffer("buf0").evidence == Evidence.ALIGNMENT


def test_with_inlining_off_each_op_has_a_buffer_of_its_own():
    facts = facts_of(FIXTURES / "captured" / "sin_cos_inlining")
    assert {facts.node("cos").fate, facts.node("sin").fate} == {Fate.REALIZED}
    assert facts.node("cos").buffer != facts.node("sin").buffer
    assert (facts.summary.scheduler_nodes, facts.summary.groups) == (2, 1)


@pytest.mark.parametrize("version", ["2.5", "2.9", "2.13", "2.15"])
def test_slices_of_one_projection_are_told_apart(version):
    """q, k and v are the same computation on the same buffer: only where they start in it differs."""
    run = FIXTURES / "captured" / f"attention_block-{version}"
    exact = facts_of(run, "forward", "provenance")
    captured = next(analyze(g) for g in load_run(run).graphs if "forward" in g.name)
    slices = [
        b.name for b in captured.buffers if b.fx_node and captured.node(b.fx_node).node.target.startswith("aten.clone")
    ]
    assert len(slices) >= 3
    assert [exact.buffer(name).fx_node for name in slices] == [captured.buffer(name).fx_node for name in slices]


def test_a_scatter_writes_its_value_into_a_fresh_buffer():
    facts = facts_of(FIXTURES / "captured" / "indexing-2.13")
    scatter = facts.node("scatter_add")
    assert scatter.fate == Fate.REALIZED
    writer = next(b for b in facts.buffers if b.reason and b.reason.startswith("writes the value of scatter_add"))
    assert writer.shares_memory_with == scatter.buffer


def test_equal_values_are_realized_though_nobody_can_say_which_is_which():
    """The two states that an LSTM starts from are equal constants, each in a buffer."""
    found = fates(facts_of(FIXTURES / "runs" / "cpu-2.13" / "lstm"))
    assert (found["full_default"], found["full_default_1"]) == (Fate.REALIZED, Fate.REALIZED)


def test_scatters_are_told_apart_by_the_calls_that_write():
    """One scatter is a library call: it parts the loops, which write into copies of one input, into two kernels."""
    facts = facts_of(FIXTURES / "runs" / "cpu-2.7" / "scatter_many")
    assert facts.buffer("buf4").fx_node == "scatter_reduce"
    assert facts.buffer("buf2").fx_node == "scatter_add"
    kernels = {group.name: group.kernel for group in facts.groups}
    assert kernels["op5"] == "aten.scatter_reduce_.two"
    assert kernels["op9"] == "cpp_fused_index_put_1" != kernels["op1_op3_op7_op11"]


def test_up_to_torch_2_8_origins_end_at_views_and_lists():
    """`index_put(x, [select], expand)`: neither the view of the scalar nor the list of indices passes origins on."""
    facts = facts_of(FIXTURES / "runs" / "cpu-2.7" / "scatter_many")
    assert facts.buffer("buf11").origins == ("index_put_2",)
    assert "buf11" in facts.node("scalar_tensor").inlined_into


def test_a_copy_between_devices_is_a_call():
    facts = facts_of(FIXTURES / "runs" / "cuda-2.14.1-a100" / "device_copy")
    assert (facts.node("device_put").buffer, facts.buffer("buf2").kernel) == ("buf2", "copy_")
    assert facts.summary.kernel_calls == 3


@pytest.mark.parametrize(
    ("graph", "dead"),
    [
        # x.add_(y); x.mul_(2): add, sin and sin*y still read x when the last copy overwrites it
        ("inference_0", {"buf1": "add", "buf3": "sin", "buf4": "mul_1"}),
        # averages: what was computed from them on the way to the parameters, list by list
        (
            "inference_1",
            {"buf2": "getitem", "buf4": "abs_1", "buf5": "add", "buf7": "getitem_1", "buf9": "abs_2", "buf10": "add_1"},
        ),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_values_that_read_an_overwritten_input_had_buffers(graph, dead, level):
    """The dump shows no such buffer: their numbers are missing, as many as there are such values."""
    facts = facts_of(FIXTURES / "captured" / "mutation-2.13", graph, level)
    found = {b.name: b.fx_node for b in facts.buffers if b.reason and b.reason.startswith(GONE)}
    assert found == dead
    assert {facts.buffer(name).storage for name in dead} == {Storage.REMOVED}
    exact = facts_of_capture("mutation-2.13", graph)
    assert all(set(facts.buffer(name).origins) == set(exact.buffer(name).origins) for name in dead)


def test_a_missing_number_that_is_not_explained_stays_unknown():
    """Without the one write that made them, nothing tells whose the missing buffers were."""
    graph = without(load_run(FIXTURES / "captured" / "mutation-2.13").graphs[0], "bare")
    facts = analyze(replace(graph, pre=replace(graph.pre, nodes=graph.pre.nodes[:-1])))
    assert [b.name for b in facts.buffers if b.name in ("buf1", "buf3", "buf4")] == []


def test_a_buffer_that_writes_into_an_input_is_the_node_that_does():
    facts = facts_of(FIXTURES / "captured" / "mutation-2.13", "inference_1")
    assert facts.node("getitem_4").node.args == ("_foreach_addcdiv", "0")
    assert facts.buffer("buf0").reason == "writes the value of getitem_4 into arg4_1"
    assert facts.buffer("buf6").reason == "writes the value of copy_ into arg0_1"


def test_an_unused_result_of_a_reduction_is_removed():
    """Welford's third result, the weight: nothing reads it, and no dump shows it."""
    facts = facts_of(FIXTURES / "captured" / "reductions-2.9")
    unused = [b for b in facts.buffers if b.reason and "a result of reduction:welford_reduce beside" in b.reason]
    assert unused
    assert {(b.fx_node, b.storage) for b in unused} == {(None, Storage.REMOVED)}
    exact = facts_of_capture("reductions-2.9", "")
    assert all(exact.buffer(b.name).storage == Storage.REMOVED for b in unused)


def test_without_a_dump_nothing_is_said_to_be_folded():
    run = load_run(FIXTURES / "captured" / "sin_cos_thresholds").graphs[0]
    facts = analyze(replace(without(run, "bare"), pre=None, post=None))
    assert fates(facts)["cos"] == Fate.UNKNOWN
    assert facts.node("cos").reason == "no IR dump: which values got buffers is not known"
    assert (facts.summary.realized, facts.summary.groups, facts.summary.bytes_read) == (None, None, None)


def test_an_op_is_computed_where_its_operation_is_and_not_where_a_helper_brings_its_result():
    """The variance of relu: two sums (buf1, buf3) and the result (buf5) do relu, the divisions of the sums do not."""
    facts = facts_of(FIXTURES / "runs" / "cpu-2.13" / "c28_mark_dynamic", "forward")
    assert facts.node("relu").inlined_into == ("buf1", "buf3", "buf5")
    assert "relu" in facts.buffer("buf2").origins
    computed = facts.computed_by_group()
    holding = {name for name, names in computed.items() if "relu" in names}
    assert holding == {facts.buffer(name).group for name in ("buf1", "buf3", "buf5")}


def test_a_library_call_computes_itself_alone():
    facts = facts_of_capture("attention_block-2.13", "forward")
    calls = [group.name for group in facts.groups if (group.kernel or "").startswith("extern_kernels.")]
    assert calls
    assert all(len(facts.computed_by_group()[name]) == 1 for name in calls)


def test_of_a_dump_that_was_cut_off_nothing_is_counted():
    graph = without(load_run(FIXTURES / "captured" / "sin_cos_inlining").graphs[0], "bare")
    cut = replace(graph.pre, nodes=graph.pre.nodes[:1], artifact=replace(graph.pre.artifact, problems=(CUT_OFF,)))
    post = replace(graph.post, artifact=replace(graph.post.artifact, problems=(CUT_OFF,)))
    summary = analyze(replace(graph, pre=cut, post=post)).summary
    assert (summary.scheduler_nodes, summary.groups, summary.bytes_read, summary.bytes_written) == (None,) * 4


def test_the_wrapper_alone_tells_what_is_allocated():
    """One buffer of 1000 floats, whether or not an IR dump is there."""
    graph = load_run(FIXTURES / "captured" / "sin_cos_thresholds").graphs[0]
    alone = replace(without(graph, "bare"), pre=None, post=None)
    assert {analyze(one).summary.allocated_bytes for one in (graph, alone)} == {4000}


def test_without_code_storage_and_kernels_are_unknown():
    graph = load_run(FIXTURES / "captured" / "sin_cos_thresholds").graphs[0]
    facts = analyze(replace(without(graph, "bare"), code=None))
    assert facts.buffer("buf0").storage == Storage.UNKNOWN
    assert facts.buffer("buf0").fx_node == "sin"
    assert facts.groups[0].kernel is None


def test_the_sidecar_is_believed_and_named():
    graph = next(g for g in load_run(FIXTURES / "captured" / "attention_block-2.13").graphs if "forward" in g.name)
    facts = analyze(graph)
    assert {buffer.evidence for buffer in facts.buffers} == {Evidence.CAPTURE}
    recorded = {buffer.name: buffer.origin_node for buffer in graph.sidecar.buffers()}
    # Inductor notes no origin node for a getitem; the record of its lowering names the buffer.
    assert {buffer.name: buffer.fx_node for buffer in facts.buffers} == recorded | {"buf1": "getitem_1"}
    assert facts.node("getitem_1").buffer == "buf1"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("graph", "owners"),
    [
        # max(-1) over 5: the argmax ends in `where`, as the value that is made of it does
        ("inference_0", {"buf0": "getitem_1", "buf1": "where"}),
        # one_hot(...).sum(1) adds two elements up inside the sum over 16
        ("inference_1", {"buf8": "sum_2", "buf10": "mul_1", "buf11": "mean_2"}),
        # cat([fours[:1], eights], 1): 3 additions make the view of `fours`, 7 make `eights`
        ("inference_2", {"buf0": "slice_7", "buf1": "add_2", "buf2": "cat", "buf4": "add_3", "buf5": "cat_1"}),
    ],
)
def test_values_that_look_alike_are_told_apart(graph, owners, level):
    facts = facts_of(FIXTURES / "captured" / "written_out-2.13", graph, level)
    assert {name: facts.buffer(name).fx_node for name in owners} == owners


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_written_into_a_buffer_is_not_computed_by_its_own_body(level):
    """zeros(4, 6) is filled in buf0; index_put_ adds relu(values) to it in another loop."""
    facts = facts_of(FIXTURES / "captured" / "written_out-2.13", "inference_3", level)
    written = facts.node("index_put").buffer
    writer = next(b for b in facts.buffers if b.shares_memory_with == written)
    assert facts.buffer(written).origins == ("full_default",)
    assert "relu" in writer.origins


def test_where_nothing_fits_no_helper_is_claimed():
    """An op of which only the name is changed: what computes it is there, and nobody can say whose it is."""
    graph = without(load_run(FIXTURES / "captured" / "sin_cos_thresholds").graphs[0], "bare")
    nodes = tuple(replace(n, target="aten.erf.default") if n.name == "cos" else n for n in graph.fx.nodes)
    facts = analyze(replace(graph, fx=replace(graph.fx, nodes=nodes)))
    assert facts.buffer("buf0").fx_node is None
    assert facts.buffer("buf0").reason.startswith("no FX node fits: ")


@pytest.mark.parametrize("level", LEVELS)
def test_accuracy_against_the_compiler(level):
    """The targets are for all runs there are; on the committed captures they hold with room to spare."""
    counts = measure(CAPTURED, level)
    figures = row(counts)
    assert counts["graphs"] >= 17
    assert counts["owner_wrong"] == 0
    assert figures["owner right"] >= 0.98
    assert figures["kernel right"] >= 0.995
    assert (figures["removed found"], figures["removed invented"]) == (1.0, 0)
    assert figures["origins precision"] >= 0.97
    assert figures["kernel → op precision"] >= 0.97
    assert figures["kernel → op recall"] >= 0.93
