"""Costs: bytes as Inductor itself counts them, work done again by inlining, traffic that fusion saves."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.analyze.traffic import Traffic
from analyzer.analyze.whole import traffic_of
from analyzer.load import load_run
from analyzer.model import CompiledGraph, Dep, DumpBuffer, DumpNode, Layout, LoopBody, NodeUser
from analyzer.reasons.costs import costs

CAPTURED = Path(__file__).parent.parent / "fixtures/captured"


def own_counts(graph: CompiledGraph) -> dict[str, int]:
    """What `BaseSchedulerNode.get_read_write_buffers_sizes` said of each group, from the sidecar."""
    assert graph.sidecar is not None
    groups = [group for recorded in graph.sidecar.graphs for group in recorded.groups]
    return {group.name: group.bytes_accessed for group in groups if group.bytes_accessed is not None}


def own_and_ours(graph: CompiledGraph) -> dict[str, tuple[int, int]]:
    """Both counts of each group whose sizes are numbers."""
    theirs, traffic = own_counts(graph), traffic_of(graph)
    found = {node.name: traffic.of([node]) for node in graph.post.nodes} if graph.post else {}
    return {name: (theirs[name], read + wrote) for name, (read, wrote) in found.items() if None not in (read, wrote)}


@pytest.mark.parametrize("run", sorted(path.name for path in CAPTURED.iterdir()))
def test_traffic_is_what_inductor_counts(run: str) -> None:
    """For every group of every captured graph, torch 2.5 to 2.15, all numbers exactly."""
    for graph in load_run(CAPTURED / run).graphs:
        for name, (theirs, ours) in own_and_ours(graph).items():
            assert ours == theirs, f"{graph.name} {name}"


def test_all_groups_are_compared() -> None:
    """exp and relu: x in, two out. mm: two in, one out. sum and div: three in, one out. tanh: one in, one out."""
    (graph,) = load_run(CAPTURED / "apart-2.13").graphs
    tensor, weight = 8 * 16 * 4, 16 * 16 * 4
    assert own_and_ours(graph) == {
        "op0_op1": (3 * tensor, 3 * tensor),
        "op2": (2 * tensor + weight, 2 * tensor + weight),
        "op3_op4": (4 * tensor, 4 * tensor),
        "op5": (2 * weight, 2 * weight),
    }


# ------------------------------------------------------------------------------------- the rules, on nodes made by hand

VECTOR = Layout("FixedLayout", "", "cpu", "torch.float32", (100,), (1,))
LOOP = LoopBody((("p0", 10),), (), ())


def reads(name: str, index: str = "c0") -> Dep:
    return Dep("MemoryDep", name, index, (("c0", 10),))


def makes(name: str, *users: str) -> DumpBuffer:
    return DumpBuffer(name, "ComputedBuffer", VECTOR, users=tuple(NodeUser("SchedulerNode", user) for user in users))


def test_a_loop_touches_no_more_than_its_iterations_per_dependency() -> None:
    """10 iterations over 100 elements: 40 bytes for one access, 80 for two different ones."""
    node = DumpNode("op0", "SchedulerNode", (), (reads("buf0"),), (), (reads("x"), reads("x", "c0 + 10")), body=LOOP)
    assert Traffic({"x": VECTOR, "buf0": VECTOR}, (node,)).of([node]) == (80, 40)


def test_a_library_call_touches_everything() -> None:
    node = DumpNode("op0", "ExternKernelSchedulerNode", (), (Dep("StarDep", "buf0"),), (), (Dep("StarDep", "x"),))
    assert Traffic({"x": VECTOR, "buf0": VECTOR}, (node,)).of([node]) == (400, 400)


def test_what_only_members_use_costs_nothing() -> None:
    first = DumpNode("op0", "SchedulerNode", (), (reads("buf0"),), (), (reads("x"),), buffers=(makes("buf0", "op1"),))
    last = DumpNode("op1", "SchedulerNode", (), (reads("buf1"),), (reads("buf0"),), buffers=(makes("buf1", "OUTPUT"),))
    fused = DumpNode(
        "op0_op1",
        "FusedSchedulerNode",
        (),
        first.writes + last.writes,
        last.unmet,
        first.met,
        members=(first, last),
    )
    traffic = Traffic({"x": VECTOR, "buf0": VECTOR, "buf1": VECTOR}, (first, last))
    assert traffic.kept_inside(fused) == {"buf0"}
    assert traffic.of([fused]) == (400, 400)


def test_an_unknown_or_symbolic_size_gives_no_number() -> None:
    symbolic = Layout("FixedLayout", "", "cpu", "torch.float32", ("s0",), (1,))
    node = DumpNode("op0", "ExternKernelSchedulerNode", (), (Dep("StarDep", "buf0"),), (), (Dep("StarDep", "x"),))
    assert Traffic({"x": symbolic, "buf0": VECTOR}, (node,)).of([node]) == (None, 400)
    assert Traffic({"buf0": VECTOR}, (node,)).of([node]) == (None, 400)


def test_constants_and_concatenations_count_nothing() -> None:
    node = DumpNode("op0", "ExternKernelSchedulerNode", (), (Dep("StarDep", "buf0"),), (), (Dep("StarDep", "frozen"),))
    assert Traffic({"frozen": VECTOR, "buf0": VECTOR}, (node,), {"frozen"}).of([node]) == (0, 400)
    nop = DumpNode("op1", "NopKernelSchedulerNode", ("ConcatKernel",), (Dep("StarDep", "buf0"),))
    assert Traffic({"buf0": VECTOR}, (nop,)).of([nop]) == (0, 0)


# --------------------------------------------------------------------------------------------------- the program apart


def test_work_done_again() -> None:
    """`twice = x * 3` (8×16 floats) is computed in the loop of relu and in that of the sum, which are two groups."""
    (graph,) = load_run(CAPTURED / "apart-2.13").graphs
    (again,) = costs(analyze(graph)).recomputed
    assert (again.node, again.places, again.groups) == ("mul", ("buf1", "buf3"), ("op0_op1", "op3_op4"))
    assert again.least == again.most == 8 * 16
    assert again.realizing_bytes == 3 * 8 * 16 * 4  # one write, two reads


def test_traffic_saved_by_fusion() -> None:
    """exp alone: read x, write buf0. relu alone: read x and buf0, write buf1. Together: read x once, write both."""
    (graph,) = load_run(CAPTURED / "apart-2.13").graphs
    saved = {found.group: found for found in costs(analyze(graph)).saved}
    tensor = 8 * 16 * 4
    assert (saved["op0_op1"].apart_bytes, saved["op0_op1"].together_bytes) == (5 * tensor, 3 * tensor)
    assert saved["op0_op1"].kept_inside == ()
    # The sum (8 floats) is written and read inside the group only: that is all that its fusion with div saves.
    assert saved["op3_op4"].bytes == 2 * 8 * 4
    assert saved["op3_op4"].kept_inside == ("buf3",)
    assert [found.group for found in costs(analyze(graph)).saved] == ["op0_op1", "op3_op4"]


def test_symbolic_sizes_are_listed_and_not_guessed() -> None:
    run = load_run(CAPTURED.parent / "runs/cpu-2.13/c28_mark_dynamic")
    found = [costs(analyze(graph)) for graph in run.graphs]
    assert any(cost.unsized for cost in found)
    assert not any(cost.saved for cost in found)
