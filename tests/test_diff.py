"""What a diff says of real pairs of runs: the decisions that differ, and nothing about names and numbers."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import cli
from analyzer.analyze import analyze
from analyzer.compare.pairing import pair_graphs
from analyzer.diff.compare import diff_graphs, diff_runs
from analyzer.diff.layers.words import home_text
from analyzer.diff.records import Change, Kind, Layer, RunDiff, Side
from analyzer.diff.repeats import collapse
from analyzer.facts import BufferFact, Storage
from analyzer.load import load_run
from analyzer.model import Artifact, ArtifactState, CacheState, CompiledGraph, FxGraph, FxNode, Run

FIXTURES = Path(__file__).parent.parent / "fixtures"
ARMS = FIXTURES / "ablations/cpu-2.13"
RUNS = [*sorted(FIXTURES.glob("runs/*/*")), *sorted(FIXTURES.glob("captured/*"))]

PAIRS = [
    ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining/sincos"),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/fusion/softmax"),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/realize-thresholds/softmax"),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/horizontal-fusion/softmax"),
    ("cpu-2.13/baseline/chain_buf", "cpu-2.13/inplace-buffers/chain_buf"),
    ("cpu-2.13/baseline/lin_eval", "cpu-2.13/freezing/lin_eval"),
    ("cpu-2.13/baseline/mm_bias", "cpu-2.13/pattern-matching/mm_bias"),
    ("cpu-2.13/baseline/loopord", "cpu-2.13/loop-layout-reordering/loopord"),
    ("cpu-2.13/baseline/cse_train", "cpu-2.13/cse/cse_train"),
    ("cpu-2.5/baseline/sincos", "cpu-2.13/baseline/sincos"),
    ("../captured/graph_break_whole", "../captured/graph_break"),
    ("cuda-2.14.1/baseline/resid", "cuda-2.14.1/peak-memory-reordering/resid"),
    ("cuda-2.14.1/baseline/convbn", "cuda-2.14.1/layout-optimization/convbn"),
]


@cache
def run(path: str) -> Run:
    return load_run(FIXTURES / "ablations" / path)


@cache
def compared(old: str, new: str) -> RunDiff:
    return diff_runs(run(old), run(new))


def changes(old: str, new: str) -> tuple[Change, ...]:
    (graph,) = compared(old, new).graphs
    return graph.changes


# ------------------------------------------------------------------------------------------------------- real pairs


def test_the_founding_pair_differs_in_its_two_settings_alone() -> None:
    """Both thresholds at 0 on sin(cos(x)): torch 2.13 decides everything as before."""
    diff = compared("cpu-2.13/baseline/sincos", "cpu-2.13/realize-thresholds/sincos")
    assert [(change.key, change.new) for change in diff.config] == [
        ("torch._inductor.config.realize_opcount_threshold", "0"),
        ("torch._inductor.config.realize_reads_threshold", "0"),
    ]
    assert [change.new_at.line for change in diff.config if change.new_at] == [27, 26]
    assert not diff.environment
    assert [graph.equal for graph in diff.graphs] == [True]
    assert not diff.equal


def test_turning_inlining_off_realizes_cos() -> None:
    """Fusion puts it into one group again, and the result takes over its memory."""
    fate, storage = changes("cpu-2.13/baseline/sincos", "cpu-2.13/inlining/sincos")
    assert (fate.layer, fate.kind, fate.old.ids, fate.new.ids) == (Layer.LOWERING, Kind.CHANGED, ("cos",), ("cos",))
    assert fate.detail == "inlined into buf0 → realized as buf0, in group op0_op1 (allocated)"
    assert (storage.layer, storage.old.ids, storage.new.ids) == (Layer.CODE, ("buf0", "sin"), ("buf1", "sin"))
    assert storage.detail == "returned → returned, in the memory of buf0"
    assert storage.new.at is not None
    assert storage.new.at.file.endswith("ir_pre_fusion.txt")
    assert storage.new.at.line == 29


def test_turning_fusion_off_splits_the_group_and_costs_traffic() -> None:
    found = changes("cpu-2.13/baseline/softmax", "cpu-2.13/fusion/softmax")
    (split,) = (change for change in found if change.layer == Layer.SCHEDULING)
    assert split.kind == Kind.SPLIT
    assert split.old.ids == ("op0_op1_op2_op3_op4_op5",)
    assert split.new.ids == ("op0", "op1", "op2", "op3", "op4", "op5")
    cost = {change.aspect: (int(change.old.text), int(change.new.text)) for change in found if change.layer == "cost"}
    assert cost == {"bytes_read": (4194304, 25172480), "bytes_written": (4194304, 8395264)}
    assert {change.layer for change in found} == {Layer.SCHEDULING, Layer.CODE, Layer.COST}


def test_more_realized_values_are_told_once_each() -> None:
    """The bodies that lose them, and the groups that gain them, follow and are not told again."""
    found = changes("cpu-2.13/baseline/softmax", "cpu-2.13/realize-thresholds/softmax")
    lowered = [change for change in found if change.layer == Layer.LOWERING]
    assert [change.aspect for change in lowered] == ["fate"] * 6
    assert all(change.new.text.startswith("realized as buf") for change in lowered)
    assert not [change for change in found if change.layer == Layer.SCHEDULING]


def test_scalar_code_shows_in_the_kernel_alone() -> None:
    (body,) = changes("cpu-2.13/baseline/sincos", "cpu-2.13/vectorization/sincos")
    assert (body.layer, body.aspect) == (Layer.CODE, "body")
    assert body.detail == "a cpp kernel, 1 loop nest, vectorized → a cpp kernel, 1 loop nest"
    assert any("tmp0.cos()" in line for line in body.old.code)
    assert any("std::cos(tmp0)" in line for line in body.new.code)


def test_memory_is_told_by_value_and_not_by_number() -> None:
    found = changes("cpu-2.13/baseline/chain_buf", "cpu-2.13/inplace-buffers/chain_buf")
    first = found[0]
    assert (first.aspect, first.old.ids[1]) == ("storage", "relu")
    assert first.detail == "reuses the memory of buf0 → allocated"


@pytest.mark.parametrize(
    ("storage", "group", "text"),
    [(Storage.REMOVED, "op0_op1", "removed by fusion"), (Storage.REMOVED, None, "dead before scheduling")],
)
def test_what_no_group_computes_was_not_removed_by_fusion(storage: Storage, group: str | None, text: str) -> None:
    assert home_text(BufferFact("buf2", "", "ComputedBuffer", storage=storage, group=group)) == text


def test_another_order_of_execution_is_one_change() -> None:
    found = changes("cuda-2.14.1/baseline/resid", "cuda-2.14.1/peak-memory-reordering/resid")
    (order,) = (change for change in found if change.layer == Layer.SCHEDULING)
    assert (order.kind, order.aspect) == (Kind.MOVED, "order")
    assert " after " in order.detail


@pytest.mark.parametrize("path", RUNS, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_run_equals_itself(path: Path) -> None:
    loaded = load_run(path)
    diff = diff_runs(loaded, load_run(path))
    assert (diff.config, diff.environment) == ((), ())
    assert [graph.changes for graph in diff.graphs] == [()] * len(loaded.graphs)
    assert diff.equal


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_diff_mirrors(old: str, new: str) -> None:
    """The other way round everything is the same, with its sides swapped."""
    there, back = compared(old, new), compared(new, old)
    assert Counter(change.mirrored() for change in back.config) == Counter(there.config)
    assert Counter(change.mirrored() for change in back.environment) == Counter(there.environment)
    for one, other in zip(there.graphs, back.graphs, strict=True):
        assert (other.new, other.old) == (one.old, one.new)
        assert Counter(change.mirrored() for change in other.changes) == Counter(one.changes)


def test_a_caller_who_knows_better_decides_the_matching() -> None:
    (old,), (new,) = run("cpu-2.13/baseline/sincos").graphs, run("cpu-2.13/inlining/sincos").graphs
    graph = diff_graphs(analyze(old), analyze(new), nodes={"cos": "sin", "sin": "cos"})
    assert ("sin", "cos") in {(change.old.ids[0], change.new.ids[0]) for change in graph.changes}


# ----------------------------------------------------------------------------------------------------- surroundings


def test_unlike_caches_are_said_loudly() -> None:
    base = run("cpu-2.13/baseline/sincos")
    diff = diff_runs(replace(base, cache_state=CacheState.COLD), replace(base, cache_state=CacheState.WARM))
    (change,) = diff.environment
    assert (change.what, change.old, change.new) == ("caches", "cold", "warm")
    assert change.warning


def test_another_torch_is_a_difference_and_another_program_a_warning() -> None:
    versions = compared("cpu-2.5/baseline/sincos", "cpu-2.13/baseline/sincos").environment
    assert [(change.what, change.warning) for change in versions] == [("torch", None)]
    programs = compared("cpu-2.13/baseline/sincos", "cpu-2.13/baseline/softmax").environment
    assert {change.what for change in programs if change.warning} >= {"inputs"}


def test_an_edited_source_line_is_told_and_is_no_other_program() -> None:
    """All lines but one are common: that is a program under development, not another one."""
    base = load_run(FIXTURES / "captured/attention_block-2.13")
    forward = next(graph for graph in base.graphs if graph.kind == "forward" and graph.fx is not None)
    lines = sorted({node.source.code for node in forward.fx.nodes if node.source and node.source.code})
    edited = diff_runs(base, with_source(base, lines[:1])).environment
    assert [(change.what, change.warning) for change in edited] == [("source", None)]
    (change,) = diff_runs(base, with_source(base, lines)).environment
    assert change.warning


def with_source(base: Run, lines: list[str]) -> Run:
    """The run with `0.5 * ` before these lines of its source."""

    def edited(node: FxNode) -> FxNode:
        if node.source is None or node.source.code not in lines:
            return node
        return replace(node, source=replace(node.source, code=f"0.5 * {node.source.code}"))

    graphs = tuple(
        replace(graph, fx=replace(graph.fx, nodes=tuple(map(edited, graph.fx.nodes)))) if graph.fx else graph
        for graph in base.graphs
    )
    return replace(base, graphs=graphs)


def test_another_torch_of_the_same_captured_program_differs_in_defaults_alone() -> None:
    """Settings that only one of two versions has are no choice of anybody; the decisions are equal."""
    runs = [load_run(FIXTURES / "captured" / f"attention_block-{version}") for version in ("2.13", "2.15")]
    diff = diff_runs(*runs)
    assert [graph.equal for graph in diff.graphs] == [True, True]
    assert {change.what for change in diff.environment} == {"torch"}
    assert "torch._inductor.config.combo_kernel_max_distance" in {change.key for change in diff.config}
    assert not [change for change in diff.config if None in (change.old, change.new)]


def graph_of(name: str, *targets: str, kind: str = "inference") -> CompiledGraph:
    nodes = tuple(FxNode(f"n{i}", "call_function", target) for i, target in enumerate(targets))
    fx = FxGraph(Artifact("fx.py", ArtifactState.PARSED), nodes)
    return CompiledGraph(name, kind, name, fx=fx)


def test_a_new_graph_break_does_not_shift_the_pairs() -> None:
    """The new run compiles one graph more before the others: their numbers move up by one."""
    old = [graph_of("model__0", "aten.sin", "aten.mul"), graph_of("model__1", "aten.cos", "aten.add")]
    new = [graph_of("model__0", "aten.exp"), graph_of("model__1", *("aten.sin", "aten.mul"))]
    new.append(graph_of("model__2", "aten.cos", "aten.add"))
    found = [(one.name if one else None, other.name if other else None) for one, other in pair_graphs(old, new)]
    assert found == [("model__0", "model__1"), ("model__1", "model__2"), (None, "model__0")]


def test_a_graph_break_moves_nodes_and_removes_none() -> None:
    """Linear and GELU before it, linear and softmax after it: the value between them is returned and is an input."""
    whole, broken = (load_run(FIXTURES / "captured" / name) for name in ("graph_break_whole", "graph_break"))
    first, second = diff_runs(whole, broken).graphs
    split, storage = first.changes
    assert (split.kind, split.aspect, split.layer) == (Kind.SPLIT, "graphs", Layer.FX)
    assert (split.old.ids, split.new.ids) == (
        ("model__0_inference_0.0",),
        ("model__0_inference_0.0", "model__1_inference_1.1"),
    )
    assert storage.detail == "reuses the memory of buf0 → returned, in the memory of buf0"
    assert first.before is not None
    assert first.after is not None
    assert first.before.fx_nodes == first.after.fx_nodes
    assert (second.old, second.new) == ("model__0_inference_0.0", "model__1_inference_1.1")
    (crossing,) = second.changes
    assert (crossing.kind, crossing.detail) == (Kind.ADDED, "input float32[8, 64]")


def test_a_graph_that_computes_something_else_is_no_part() -> None:
    """The old graph lost the nodes, but the new graph has others."""
    old = replace(run("cpu-2.13/baseline/sincos"), graphs=(graph_of("a", "aten.sin", "aten.exp", "aten.log"),))
    new = replace(old, graphs=(graph_of("a", "aten.sin", "aten.exp"), graph_of("b", "aten.cos", "aten.tan")))
    pairs = [(graph.old, graph.new) for graph in diff_runs(old, new).graphs]
    assert pairs == [("a", "a"), (None, "b")]


def test_graphs_that_changed_keep_their_names_and_lone_graphs_each_other() -> None:
    renamed = pair_graphs([graph_of("model__0", "aten.sin")], [graph_of("model___0.0", "aten.exp")])
    assert [(one and one.name, other and other.name) for one, other in renamed] == [("model__0", "model___0.0")]
    old = [graph_of("a", "aten.sin"), graph_of("b", "aten.exp")]
    changed = pair_graphs(old, [graph_of("b", "aten.exp", "aten.log"), graph_of("a", "aten.sin", "aten.tan")])
    assert [one and other and (one.name, other.name) for one, other in changed] == [("a", "a"), ("b", "b")]


# ---------------------------------------------------------------------------------------------------------- repeats


def realized(node: str, buffer: str, dtype: str = "float32") -> Change:
    sides = Side((node,), "inlined into buf0, buf1"), Side((node,), f"realized as {buffer} ({dtype})")
    return Change(Kind.CHANGED, Layer.LOWERING, "fate", "aten.mul.Tensor", *sides)


def test_equal_changes_of_repeated_layers_are_told_once() -> None:
    first, *rest = collapse(realized(f"mul_{i}", f"buf{3 * i}") for i in range(48))
    assert not rest
    assert (first.count, first.change.old.ids) == (48, ("mul_0",))


def test_changes_that_differ_in_more_than_numbers_stay_apart() -> None:
    repeated = collapse([realized("mul", "buf1"), realized("mul_1", "buf2", "float16"), realized("mul_2", "buf3")])
    assert [entry.count for entry in repeated] == [2, 1]


# ------------------------------------------------------------------------------------------------- the command line


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    code = cli.main(["diff", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = ARMS / "baseline/softmax"
    assert told(capsys, base, base)[0] == 0
    assert told(capsys, base, ARMS / "fusion/softmax")[0] == 1
    assert told(capsys, base, tmp_path / "nothing")[0] == 2


def test_what_only_one_run_tells_is_no_equality(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    part = shutil.copytree(ARMS / "baseline/sincos", tmp_path / "part")
    next(part.rglob("ir_post_fusion.txt")).unlink()
    code, text = told(capsys, ARMS / "baseline/sincos", part)
    assert code == 2
    assert "the new run does not tell its groups" in " ".join(text.split())


def test_what_one_run_lacks_is_not_told_as_removed() -> None:
    """Without any IR dump nothing is known of buffers: neither they nor what follows from them went away."""
    base = run("cpu-2.13/baseline/softmax")
    (graph,) = base.graphs
    silent = replace(base, graphs=(replace(graph, pre=None, post=None, sidecar=None, code=None),))
    (diff,) = diff_runs(base, silent).graphs
    assert diff.unknown
    assert not [change for change in diff.changes if change.layer != Layer.FX]


def test_json_says_everything(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = told(capsys, ARMS / "baseline/sincos", ARMS / "inlining/sincos", "--json")
    document = json.loads(text)
    assert (code, document["schema_version"], document["equal"]) == (1, 1, False)
    (graph,) = document["graphs"]
    assert (graph["old"], graph["new"]) == ("model__0_inference_0.0", "model__0_inference_0.0")
    first = graph["changes"][0]
    assert {key: first[key] for key in ("kind", "layer", "old", "new", "count")} == {
        "kind": "changed",
        "layer": "lowering",
        "old": ["cos"],
        "new": ["cos"],
        "count": 1,
    }
    assert first["new_at"]["line"] == 4
    assert document["summary"]["changes"] == {"fx": 0, "lowering": 1, "scheduling": 0, "code": 1, "cost": 0}


def test_one_layer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = told(capsys, ARMS / "baseline/softmax", ARMS / "fusion/softmax", "--only", "scheduling")
    assert code == 1
    assert "1 group split into 6" in text
    assert "read by kernels" not in text


def test_the_summary_has_no_single_changes(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = told(capsys, ARMS / "baseline/softmax", ARMS / "fusion/softmax", "--summary")
    assert code == 1
    assert "1 → 6 groups" in " ".join(text.split())
    assert "split" not in text
