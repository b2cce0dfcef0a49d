"""Fusion in all its parts: no group of the post-fusion dump joins what the ablation keeps apart.

Fusion is judged on `ir_post_fusion.txt`, never on kernel counts: the C++ backend packs unfused groups into one
function. Producer and consumer are joined by MemoryDep and StarDep; a WeakDep only orders.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from analyzer.audit.postconditions.inlining import count_inlined
from analyzer.audit.postconditions.outer_loop import shared_inner_loops
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each, joined
from analyzer.model import DumpNode

FOREACH = "ForeachKernelSchedulerNode"
NOT_FUSION = frozenset({"GroupedSchedulerNode"})


def _groups(arm: Arm) -> tuple[DumpNode, ...]:
    post = arm.facts.graph.post
    return post.nodes if post else ()


def is_fused(node: DumpNode) -> bool:
    """A group of more than one member; nodes that are only scheduled together are none."""
    return node.node_class not in NOT_FUSION and max(len(node.members), len(node.member_names)) > 1


def count_fused(arm: Arm) -> Count:
    """Groups with more than one member, foreach groups included."""
    return Count(tuple(node.name for node in _groups(arm) if is_fused(node)))


def _count_fused_without_foreach(arm: Arm) -> Count:
    fused = (node for node in _groups(arm) if is_fused(node) and node.node_class != FOREACH)
    return Count(tuple(node.name for node in fused))


def count_inlined_and_fused(arm: Arm) -> Count:
    """Values without a buffer, and fused groups."""
    inlined, fused = count_inlined(arm), _count_fused_without_foreach(arm)
    return Count(inlined.left + fused.left, inlined.unknown)


# ----------------------------------------------------------------------------------------------- parts of fusion


def edges(leaves: tuple[DumpNode, ...]) -> Iterator[tuple[str, str]]:
    """Producer and consumer among these nodes."""
    makers = {buffer.name: leaf.name for leaf in leaves for buffer in leaf.buffers}
    for leaf in leaves:
        read = {dep.buffer for dep in leaf.reads if dep.kind != "WeakDep"}
        yield from ((makers[name], leaf.name) for name in sorted(read & makers.keys()) if makers[name] != leaf.name)


def parts(leaves: tuple[DumpNode, ...], connecting: tuple[DumpNode, ...] = ()) -> int:
    """Into how many unconnected parts these nodes fall; `connecting` nodes only join others."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(leaf.name for leaf in leaves)
    graph.add_edges_from(edges(leaves + connecting))
    names = {leaf.name for leaf in leaves}
    return sum(1 for part in nx.connected_components(graph) if part & names)


def count_vertical(arm: Arm) -> Count:
    """Producer and consumer inside one group."""
    pairs = (pair for node in _groups(arm) if is_fused(node) for pair in edges(tuple(node.leaves())))
    return Count(tuple(f"{maker} -> {reader}" for maker, reader in pairs))


def count_horizontal(arm: Arm) -> Count:
    """Unconnected parts beyond the first, per group and per inner loop that an outer-loop fusion shares."""
    left: list[str] = []
    for node in _groups(arm):
        if is_fused(node) and node.node_class != FOREACH:
            left.extend([node.name] * (parts(tuple(node.leaves())) - 1))
    for stored, connecting in shared_inner_loops(arm.facts):
        left.extend(["_".join(leaf.name for leaf in stored)] * (parts(stored, connecting) - 1))
    return Count(tuple(left))


def is_template(node: DumpNode) -> bool:
    """A node that a matmul, convolution or attention template computes."""
    return any("TemplateBuffer" in name for name in node.inner)


def count_epilogues(arm: Arm) -> Count:
    """Groups in which another member reads a template's result."""
    return Count(tuple(node.name for node in _groups(arm) if is_fused(node) and _has_epilogue(node)))


def _has_epilogue(group: DumpNode) -> bool:
    leaves = tuple(group.leaves())
    templates = {leaf.name for leaf in leaves if is_template(leaf)}
    return any(maker in templates and reader not in templates for maker, reader in edges(leaves))


def explain_fused(base: Arm, ablated: Arm, left: Count) -> str:
    """Which groups are left, and whether the setting reaches them."""
    if not left.left:
        return ""
    foreach = tuple(node.name for node in _groups(ablated) if node.node_class == FOREACH)
    if set(left.left) <= set(foreach):
        return f"What is left are foreach groups ({joined(foreach)}), which max_fusion_size does not govern."
    return f"Still fused: {joined(left.left)}."


_SEPARATE = "no group of the post-fusion dump has more than one member"

FUSION = Postcondition(
    name="fusion",
    counted="post-fusion groups with more than one member",
    satisfied=_SEPARATE,
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=each(count_fused),
    explain=explain_fused,
    next_step="Set max_fusion_size = 1 before the first compile, or capture with `--ablation fusion`.",
)

INLINING_AND_FUSION = Postcondition(
    name="inlining+fusion",
    counted="compute nodes without a buffer of their own, and fused groups",
    satisfied=f"every compute node already has a buffer, and {_SEPARATE}",
    earliest=Stage.LOWERING,
    needs=("fx", "pre", "post"),
    measure=each(count_inlined_and_fused),
    next_step="Capture the arm with `--ablation inlining+fusion` in a fresh process.",
)

VERTICAL_FUSION = Postcondition(
    name="vertical-fusion",
    counted="producer and consumer pairs inside one group",
    satisfied="no group holds both a producer and its consumer",
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=each(count_vertical),
    next_step="Capture the arm with `--ablation vertical-fusion` in a fresh process.",
)

HORIZONTAL_FUSION = Postcondition(
    name="horizontal-fusion",
    counted="unconnected parts that share a group or an inner loop",
    satisfied="every group is one connected part",
    earliest=Stage.SCHEDULING,
    needs=("post", "code"),
    measure=each(count_horizontal),
    knobs=("score_fusion_memory_threshold", "cpp.max_horizontal_fusion_size"),
    next_step="Capture the arm with `--ablation horizontal-fusion` in a fresh process.",
)

EPILOGUE_FUSION = Postcondition(
    name="epilogue-fusion",
    counted="groups in which another member reads a template's result",
    satisfied="no template has an epilogue in its group",
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=each(count_epilogues),
    knobs=("benchmark_epilogue_fusion",),
    next_step="An epilogue needs a template: capture both arms with max_autotune on a shape where a template wins.",
)
