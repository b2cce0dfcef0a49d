"""Names and orders that mean nothing never show in a diff; one known edit shows, and nothing else."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.diff.compare import diff_runs
from analyzer.diff.records import Change, Kind, Layer
from analyzer.load import load_run
from analyzer.model import DumpNode, FxGraph, FxNode, IrDump, Run

FIXTURES = Path(__file__).parent.parent / "fixtures"
MODELS = ("ablations/cpu-2.13/baseline/softmax", "ablations/cpu-2.13/baseline/chain_buf", "runs/cpu-2.13/c11_mlp_train")
_NUMBERED = re.compile(r"(?<![A-Za-z])(buf|op)(\d+)(?!\d)")
_PID = re.compile(r"run_\d[\d_]+-pid_\d+")

seeds = st.integers(0, 10_000)


@cache
def original(model: str) -> Run:
    return load_run(FIXTURES / model)


def rewritten(model: str, into: Path, edit: Callable[[str], str]) -> Run:
    """The run with every artifact's text edited, in a folder of another name."""
    target = into / "elsewhere"
    shutil.copytree(FIXTURES / model, target)
    for file in [path for path in target.rglob("*") if path.is_file()]:
        file.write_text(edit(file.read_text(encoding="utf-8")), encoding="utf-8")
    for folder in [path for path in target.rglob("run_*") if path.is_dir()]:
        folder.rename(folder.with_name("run_2031_01_02_03_04_05_000000-pid_1"))
    return load_run(target)


def differences(old: Run, new: Run) -> list[Change]:
    diff = diff_runs(old, new)
    assert (diff.config, diff.environment) == ((), ())
    assert all(graph.old is not None and graph.new is not None and not graph.unknown for graph in diff.graphs)
    return [change for graph in diff.graphs for change in graph.changes]


# ------------------------------------------------------------------------------------------------ what means nothing


@pytest.mark.parametrize("model", MODELS)
@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_other_numbers_paths_and_processes_are_no_difference(model: str, seed: int) -> None:
    numbers = random.Random(seed).sample(range(100, 1000), 500)

    def edit(text: str) -> str:
        text = _NUMBERED.sub(lambda match: f"{match[1]}{numbers[int(match[2])]}", text)
        text = _PID.sub("run_2031_01_02_03_04_05_000000-pid_1", text)
        return re.sub(r"/tmp/torchinductor_\w+/\w+", "/var/cache/other", text)

    with TemporaryDirectory() as folder:
        assert differences(original(model), rewritten(model, Path(folder), edit)) == []


def any_order(items: Sequence[str], needs: Callable[[str], set[str]], rng: random.Random) -> list[str]:
    """A random order in which everything comes after what it needs."""
    left, found = list(items), list[str]()
    while left:
        ready = [item for item in left if not needs(item) & set(left)]
        chosen = rng.choice(ready)
        left.remove(chosen)
        found.append(chosen)
    return found


def shuffled_fx(graph: FxGraph, rng: random.Random) -> FxGraph:
    """The order of inputs is the graph's signature; all else may move."""
    nodes = {node.name: node for node in graph.nodes}
    inputs = [name for name, node in nodes.items() if node.op == "placeholder"]
    rest = [name for name in nodes if name not in inputs]
    order = [*inputs, *any_order(rest, lambda name: set(nodes[name].inputs), rng)]
    return replace(graph, nodes=tuple(nodes[name] for name in order))


def shuffled_dump(dump: IrDump, rng: random.Random) -> IrDump:
    nodes = {node.name: node for node in dump.nodes}
    maker = {buffer.name: node.name for node in dump.nodes for buffer in node.buffers}

    def needs(name: str) -> set[str]:
        return {maker[dep.buffer] for dep in nodes[name].reads if dep.buffer in maker} - {name}

    return replace(dump, nodes=tuple(nodes[name] for name in any_order(list(nodes), needs, rng)))


@pytest.mark.parametrize("model", MODELS)
@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_the_order_of_independent_nodes_is_no_difference(model: str, seed: int) -> None:
    rng, old = random.Random(seed), original(model)
    graphs = [
        replace(g, fx=shuffled_fx(g.fx, rng) if g.fx else None, pre=shuffled_dump(g.pre, rng) if g.pre else None)
        for g in old.graphs
    ]
    rng.shuffle(graphs)
    assert differences(old, replace(old, graphs=tuple(graphs))) == []


# --------------------------------------------------------------------------------------------------- one known edit


def edited_dump(model: str, edit: Callable[[DumpNode], DumpNode]) -> list[Change]:
    """What a diff says when each node before fusion is edited."""
    old = original(model)
    (graph,) = old.graphs
    assert graph.pre is not None
    pre = replace(graph.pre, nodes=tuple(edit(node) for node in graph.pre.nodes))
    return differences(old, replace(old, graphs=(replace(graph, pre=pre),)))


def test_another_stride_is_the_one_change() -> None:
    def transpose(node: DumpNode) -> DumpNode:
        buffers = tuple(
            replace(b, layout=replace(b.layout, stride=(1, 1))) if b.name == "buf1" and b.layout else b
            for b in node.buffers
        )
        return replace(node, buffers=buffers)

    (change,) = edited_dump("ablations/cpu-2.13/baseline/softmax", transpose)
    assert (change.kind, change.layer, change.aspect) == (Kind.CHANGED, Layer.LOWERING, "stride")
    assert change.old.ids == change.new.ids == ("buf1", "amax_default")
    assert change.detail == "[1, 512] → [1, 1]"


def test_another_operation_in_a_body_is_the_one_change() -> None:
    def minus(node: DumpNode) -> DumpNode:
        if node.name != "op5" or node.body is None:
            return node
        (block,) = node.body.blocks
        statements = tuple(replace(s, op="mul") if s.op == "truediv" else s for s in block.statements)
        return replace(node, body=replace(node.body, blocks=(replace(block, statements=statements),)))

    (change,) = edited_dump("ablations/cpu-2.13/baseline/softmax", minus)
    assert (change.layer, change.aspect, change.new.ids) == (Layer.LOWERING, "body", ("buf5", "div"))
    assert [line for line in change.old.code if line not in change.new.code] == ["v2 = truediv(v0, v1)"]
    assert [line for line in change.new.code if line not in change.old.code] == ["v2 = mul(v0, v1)"]


def test_a_dropped_fusion_is_the_one_decision_that_changes() -> None:
    """The dump after fusion lists the members of the group one by one; what each reads is then counted by itself."""
    old = original("ablations/cpu-2.13/baseline/softmax")
    (graph,) = old.graphs
    assert graph.post is not None
    (fused,) = graph.post.nodes
    post = replace(graph.post, nodes=tuple(fused.leaves()))
    change, *others = differences(old, replace(old, graphs=(replace(graph, post=post),)))
    assert (change.kind, change.layer, len(change.new.ids)) == (Kind.SPLIT, Layer.SCHEDULING, 6)
    assert {other.aspect for other in others} == {"bytes_read", "bytes_written"}


def with_dead_end(graph: FxGraph, after: str) -> FxGraph:
    """The graph with one more node that reads an existing one, as a second user of it."""
    extra = FxNode(
        "neg", "call_function", "aten.neg.default", (after,), (), (after,), dtype="torch.float32", shape=(1,)
    )
    return replace(graph, nodes=(*graph.nodes, extra))


@given(index=st.integers(0, 17))
@settings(max_examples=10, deadline=None)
def test_an_added_op_is_the_one_change(index: int) -> None:
    old = original("ablations/cpu-2.13/baseline/softmax")
    (graph,) = old.graphs
    assert graph.fx is not None
    after = [node.name for node in graph.fx.nodes if node.op == "call_function"][index]
    found = differences(old, replace(old, graphs=(replace(graph, fx=with_dead_end(graph.fx, after)),)))
    added = [change for change in found if change.layer == Layer.FX]
    assert [(change.kind, change.new.ids) for change in added] == [(Kind.ADDED, ("neg",))]
