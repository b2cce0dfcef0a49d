"""Ablations beyond the usual tables: prologues, dead nodes, index propagation, reductions, combo kernels, padding.

Several have no absolute postcondition: what the base's optimisation did is then what the two arms differ in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.audit.postconditions.fusion import FOREACH, edges, is_fused, is_template
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each
from analyzer.compare.sameness import plain
from analyzer.model import DumpBuffer, DumpNode


def _pre(arm: Arm) -> tuple[DumpNode, ...]:
    return tuple(arm.facts.graph.pre.leaves()) if arm.facts.graph.pre else ()


def _post(arm: Arm) -> tuple[DumpNode, ...]:
    return arm.facts.graph.post.nodes if arm.facts.graph.post else ()


def count_prologues(arm: Arm) -> Count:
    """Groups in which a template reads what another member makes."""
    return Count(tuple(node.name for node in _post(arm) if is_fused(node) and _has_prologue(node)))


def _has_prologue(group: DumpNode) -> bool:
    leaves = tuple(group.leaves())
    templates = {leaf.name for leaf in leaves if is_template(leaf)}
    return any(reader in templates for _, reader in edges(leaves))


def measure_eliminated(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Operations that only the ablated arm schedules."""
    kept = {leaf.name for leaf in _pre(base)}
    return Count(tuple(leaf.name for leaf in _pre(ablated) if leaf.name not in kept)), Count()


def measure_bodies(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Nodes whose loop body only the base has."""
    spare = Counter(plain(leaf.body) for leaf in _pre(ablated))
    changed = []
    for leaf in _pre(base):
        spare[plain(leaf.body)] -= 1
        if leaf.body is not None and spare[plain(leaf.body)] < 0:
            changed.append(leaf.name)
    return Count(tuple(changed)), Count()


def _is_reduction(node: DumpNode) -> bool:
    return node.body is not None and any(statement.op == "reduction" for statement in node.body.statements())


def measure_split(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Reductions that the base has beyond those of the ablated arm: the second steps of split ones."""
    old = [leaf.name for leaf in _pre(base) if _is_reduction(leaf)]
    return Count(tuple(old[sum(map(_is_reduction, _pre(ablated))) :])), Count()


def measure_unrolled(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Reductions that only the ablated arm has as such."""
    new = [leaf.name for leaf in _pre(ablated) if _is_reduction(leaf)]
    return Count(tuple(new[sum(map(_is_reduction, _pre(base))) :])), Count()


def measure_combined(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Groups that stand alone in the base and are part of a combined kernel in the ablated arm."""
    alone = {node.name for node in _post(base) if node.node_class != FOREACH}
    combined = (member.name for node in _post(ablated) if node.node_class == FOREACH for member in node.members)
    return Count(tuple(name for name in combined if name in alone)), Count()


def count_padded(arm: Arm) -> Count:
    """Buffers whose strides leave gaps."""
    buffers = (buffer for leaf in _pre(arm) for buffer in leaf.buffers)
    return Count(tuple(buffer.name for buffer in buffers if _has_gaps(buffer)))


def _has_gaps(buffer: DumpBuffer) -> bool:
    layout = buffer.layout
    if layout is None or layout.size is None or layout.stride is None:
        return False
    dense = 1
    for stride, size in sorted(_dimensions(layout.size, layout.stride)):
        if stride > dense:
            return True
        dense = max(dense, stride * size)
    return False


def _dimensions(size: tuple[int | str, ...], stride: tuple[int | str, ...]) -> Iterator[tuple[int, int]]:
    for extent, step in zip(size, stride, strict=False):
        if isinstance(extent, int) and isinstance(step, int) and extent > 1 and step > 0:
            yield step, extent


def count_shared_functions(arm: Arm) -> Count:
    """Groups that share a C++ function with the one before them."""
    shared = [kernel for kernel in arm.facts.kernels if kernel.backend == "cpp" and len(kernel.groups) > kernel.calls]
    number = sum(len(kernel.groups) - kernel.calls for kernel in shared)
    return Count(tuple(kernel.name for kernel in shared), number=number)


def count_generated(arm: Arm) -> Count:
    """Nodes that Inductor generates a kernel for."""
    return Count(tuple(leaf.name for leaf in _pre(arm) if "ComputedBuffer" in leaf.inner))


PROLOGUE_FUSION = Postcondition(
    name="prologue-fusion",
    counted="groups in which a template reads another member's result",
    satisfied="no template has a prologue in its group",
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=each(count_prologues),
)
DEAD_NODE_ELIMINATION = Postcondition(
    name="dead-node-elimination",
    counted="operations that were eliminated",
    satisfied="the scheduler found no dead operation",
    earliest=Stage.LOWERING,
    needs=("pre",),
    measure=measure_eliminated,
)
INDEX_PROPAGATION = Postcondition(
    name="index-propagation",
    counted="loop bodies with propagated constants or indices",
    satisfied="no loop body had anything to propagate",
    earliest=Stage.LOWERING,
    needs=("pre",),
    measure=measure_bodies,
)
SPLIT_REDUCTIONS = Postcondition(
    name="split-reductions",
    counted="second steps of split reductions",
    satisfied="no reduction was split",
    earliest=Stage.LOWERING,
    needs=("pre",),
    measure=measure_split,
)
REDUCTION_UNROLLING = Postcondition(
    name="reduction-unrolling",
    counted="unrolled reductions",
    satisfied="no reduction was unrolled",
    earliest=Stage.LOWERING,
    needs=("pre",),
    measure=measure_unrolled,
)
COMBO_KERNELS = Postcondition(
    name="combo-kernels",
    counted="groups that were combined",
    satisfied="no groups were combined into one kernel",
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=measure_combined,
)
PADDING = Postcondition(
    name="padding",
    counted="buffers with padded strides",
    satisfied="no buffer has padded strides",
    earliest=Stage.FX,
    needs=("pre",),
    measure=each(count_padded),
)
KERNEL_GROUPING = Postcondition(
    name="kernel-grouping",
    counted="groups that share a C++ function with another",
    satisfied="every group already has a function of its own",
    earliest=Stage.CODE,
    needs=("post", "code"),
    measure=each(count_shared_functions),
)
LOWERINGS = Postcondition(
    name="lowerings",
    counted="nodes with a generated kernel",
    satisfied="no kernel is generated",
    earliest=Stage.LOWERING,
    needs=("pre",),
    measure=each(count_generated),
)
