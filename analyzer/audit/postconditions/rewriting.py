"""Ablations of the FX passes: what the base's passes rewrote is what the two post-grad graphs differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from analyzer.audit.postconditions.record import Arm, Count, Measure, Postcondition, Stage, joined
from analyzer.facts import GraphFacts
from analyzer.model import FxNode

_PREPACKED = ("mkldnn.", "mkl.", "onednn.")
_Call = tuple[str, object]


def _calls(facts: GraphFacts) -> list[FxNode]:
    return [fact.node for fact in facts.nodes if fact.node.live and fact.node.op == "call_function"]


def _signature(node: FxNode) -> _Call:
    return node.target, node.shape


Rewritten = Callable[[Arm, Arm], tuple[str, ...]]
"""The nodes by which the ablated arm shows what the base's passes did."""


def undone(base: Arm, ablated: Arm) -> tuple[str, ...]:
    """Nodes that the base's passes took away; where they took none, those that they put in."""
    old, new = _calls(base.facts), _calls(ablated.facts)
    return _only_in(new, old) or _only_in(old, new)


def made(base: Arm, ablated: Arm) -> tuple[str, ...]:
    """Nodes that the base's passes put in; where they put in none, those that they took away."""
    return undone(ablated, base)


def _only_in(nodes: list[FxNode], others: list[FxNode]) -> tuple[str, ...]:
    spare = Counter(map(_signature, others))
    names = []
    for node in nodes:
        if spare[_signature(node)] > 0:
            spare[_signature(node)] -= 1
        else:
            names.append(node.name)
    return tuple(names)


def measure_rewritten(rewritten: Rewritten) -> Measure:
    """What the base's passes did and the ablated arm shows undone; nothing is left by construction."""
    return lambda base, ablated: (Count(rewritten(base, ablated)), Count())


def measure_patterns(base: Arm, ablated: Arm) -> tuple[Count, Count]:
    """As above, but prepacked weights of oneDNN and MKL stay: their patterns run at freezing time in any case."""
    left = tuple(node.name for node in _calls(ablated.facts) if node.target.startswith(_PREPACKED))
    return Count(tuple(name for name in undone(base, ablated) if name not in left) + left), Count(left)


def explain_patterns(base: Arm, ablated: Arm, left: Count) -> str:
    """Which pattern results are left."""
    if not left.left:
        return ""
    return f"{joined(left.left)} come from weight prepacking at freezing time, which pattern_matcher does not reach."


def _rewriting(
    name: str, counted: str, satisfied: str, rewritten: Rewritten = undone, next_step: str = ""
) -> Postcondition:
    return Postcondition(
        name=name,
        counted=counted,
        satisfied=satisfied,
        earliest=Stage.FX,
        needs=("fx",),
        measure=measure_rewritten(rewritten),
        next_step=next_step,
    )


PATTERN_MATCHING = Postcondition(
    name="pattern-matching",
    counted="nodes that pattern passes replaced",
    satisfied="no pattern matched: the post-grad graphs are equal",
    earliest=Stage.FX,
    needs=("fx",),
    measure=measure_patterns,
    knobs=("disabled_passes", "use_joint_graph_passes", "use_pre_grad_passes", "use_post_grad_passes"),
    explain=explain_patterns,
    next_step="Prepacking goes away with `parameter-freezing`.",
)
DECOMPOSITIONS = _rewriting(
    "decompositions", "nodes that come from decompositions", "no operator of this graph is decomposed", made
)
CONSTANT_FOLDING = _rewriting(
    "constant-folding", "nodes that were folded into constants", "the graph has no constant to fold"
)
JOINT_GRAPH_PASSES = _rewriting(
    "joint-graph-passes", "nodes that joint-graph passes rewrote", "no joint-graph pass changed this graph"
)
CSE = _rewriting(
    "cse",
    "calls that were merged",
    "the graph has no repeated calls that could be merged",
    next_step="Only training graphs are partitioned, and so deduplicated.",
)
