"""Ablations of memory layout and loop order: convolution strides, order of iteration, schedule order, `cat`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator

from analyzer.audit.postconditions.memory import count_reuse
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each, joined
from analyzer.facts import Fate
from analyzer.model import DumpBuffer, DumpNode, LoopBody

_CHANNELS = 1
_VARIABLE = re.compile(r"\b[a-z]+(\d+)\b")


# ------------------------------------------------------------------------------------------------ convolution strides


def _convolutions(arm: Arm) -> Iterator[DumpBuffer]:
    targets = {fact.name: fact.node.target for fact in arm.facts.nodes}
    for leaf in arm.facts.graph.pre.leaves() if arm.facts.graph.pre else ():
        for buffer in leaf.buffers:
            held = arm.facts.buffer(buffer.name)
            target = targets.get(held.fx_node, "") if held and held.fx_node else ""
            if "convolution" in (leaf.kernel or "") or "convolution" in target:
                yield buffer


def count_channels_last(arm: Arm) -> Count:
    """Convolution results whose channels lie next to each other in memory."""
    return Count(tuple(buffer.name for buffer in _convolutions(arm) if _is_channels_last(buffer)))


def _is_channels_last(buffer: DumpBuffer) -> bool:
    layout = buffer.layout
    if layout is None or layout.size is None or layout.stride is None or len(layout.size) < 4:
        return False
    return layout.stride[_CHANNELS] == 1 and layout.size[_CHANNELS] != 1


# --------------------------------------------------------------------------------------------------- order of iteration


def iteration(node: DumpNode) -> Hashable:
    """In which order a node walks its memory: ranges, outermost first, and indices by position of their variables."""
    if node.body is None:
        return None
    return tuple(size for _, size in node.body.ranges), frozenset(_indices(node.body))


def _indices(body: LoopBody) -> Iterator[str]:
    position = {name: str(index) for index, (name, _) in enumerate(body.ranges)}
    for _, expression in body.indices:
        yield _VARIABLE.sub(lambda found: f"v{position.get(found[0], found[0])}", expression)


def measure_loops(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Nodes that the base iterates in another order, and convolutions that it lays out differently."""
    if base.facts.graph.post is None or ablated.facts.graph.post is None:
        return Count(), Count()
    spare = Counter(iteration(leaf) for leaf in ablated.facts.graph.post.leaves())
    left = []
    for leaf in base.facts.graph.post.leaves():
        if leaf.body is not None and spare[iteration(leaf)] == 0:
            left.append(leaf.name)
        spare[iteration(leaf)] -= 1
    kept = set(count_channels_last(ablated).left)
    left.extend(name for name in count_channels_last(base).left if name not in kept)
    return Count(tuple(left)), Count()


def explain_loops(base: Arm, ablated: Arm, left: Count) -> str:
    """What changes instead: passes that move FX nodes are among the settings, and ids follow the order of nodes."""
    moved = tuple(name for name, other in zip(*_common_order(base, ablated), strict=True) if name != other)
    if not moved:
        return ""
    return (
        f"These settings also keep FX nodes where they were traced ({joined(moved)}), and lowering numbers buffers, "
        "and orders loop bodies, as FX nodes stand."
    )


def _common_order(base: Arm, ablated: Arm) -> tuple[list[str], list[str]]:
    """The live calls that both arms have, in the order of each."""
    orders = [
        [fact.name for fact in arm.facts.nodes if fact.node.live and fact.node.op == "call_function"]
        for arm in (base, ablated)
    ]
    common = set(orders[0]) & set(orders[1])
    one, other = ([name for name in order if name in common] for order in orders)
    return one, other


def measure_schedule(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """Nodes that stand elsewhere in the base's schedule."""
    old, new = _order(base), _order(ablated)
    moved = tuple(name for name, other in zip(old, new, strict=False) if name != other)
    return Count(moved if sorted(old) == sorted(new) else ()), Count()


def explain_schedule(base: Arm, ablated: Arm, left: Count) -> str:
    """What changes instead: the pass also decides when a buffer is freed, and so which memory can be taken over."""
    names = sorted(set(count_reuse(base).left) ^ set(count_reuse(ablated).left))
    return (
        f"The schedule is the same, but other buffers take over freed memory: {joined(tuple(names))}." if names else ""
    )


def _order(arm: Arm) -> tuple[str, ...]:
    post = arm.facts.graph.post
    return tuple(leaf.name for leaf in post.leaves()) if post else ()


# ----------------------------------------------------------------------------------------------------------------- cat


def count_pointwise_cats(arm: Arm) -> Count:
    """Concatenations that are computed as a loop instead of writing their inputs into one buffer."""
    cats = (fact for fact in arm.facts.nodes if fact.node.live and fact.node.target == "aten.cat.default")
    left, unknown = [], []
    for fact in cats:
        held = arm.facts.buffer(fact.buffer) if fact.buffer else None
        if fact.fate is Fate.UNKNOWN:
            unknown.append(fact.name)
        elif fact.fate is Fate.INLINED or (held is not None and held.ir_class == "ComputedBuffer"):
            left.append(fact.name)
    return Count(tuple(left), tuple(unknown))


LAYOUT_OPTIMIZATION = Postcondition(
    name="layout-optimization",
    counted="convolution results in channels-last layout",
    satisfied="no convolution result is channels-last",
    earliest=Stage.FX,
    needs=("pre",),
    measure=each(count_channels_last),
    explain=lambda base, ablated, left: (
        "Convolutions follow the layout of their inputs, which is channels-last without the optimization too."
        if left.left
        else ""
    ),
)

LOOP_LAYOUT_REORDERING = Postcondition(
    name="loop-layout-reordering",
    counted="nodes with a reordered loop or layout",
    satisfied="no loop order and no layout was changed",
    earliest=Stage.FX,
    needs=("pre", "post"),
    measure=measure_loops,
    explain=explain_loops,
)

PEAK_MEMORY_REORDERING = Postcondition(
    name="peak-memory-reordering",
    counted="nodes that were moved in the schedule",
    satisfied="the schedule is the same without it",
    earliest=Stage.SCHEDULING,
    needs=("post",),
    measure=measure_schedule,
    explain=explain_schedule,
)

CAT_AS_POINTWISE = Postcondition(
    name="cat-as-pointwise",
    counted="concatenations lowered as a loop",
    satisfied="every concatenation writes its inputs into one buffer",
    earliest=Stage.LOWERING,
    needs=("fx", "pre"),
    measure=each(count_pointwise_cats),
    knobs=("max_complex_pointwise_cat_inputs", "force_pointwise_cat"),
)
