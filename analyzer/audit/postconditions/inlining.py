"""Inlining and the realize thresholds: every computed value has a buffer of its own.

Counted are live post-grad nodes that are only computed inside the loop bodies of others. Exempt: views, inputs,
constants, nodes without a trace in the IR, and values that read no memory (`full`, `iota` and what is computed from
them alone), which `ComputedBuffer.make_loader` (torch/_inductor/ir.py) inlines even when they are realized.
"""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.analyze.targets import is_compute
from analyzer.artifacts.config_noise import known_default
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each, joined
from analyzer.compare.effective import full_key
from analyzer.facts import Fate, GraphFacts, NodeFact
from analyzer.version import at_least

REALIZE_KNOBS = ("realize_reads_threshold", "realize_opcount_threshold", "realize_acc_reads_threshold")


def count_inlined(arm: Arm) -> Count:
    """Live compute nodes without a buffer of their own."""
    exempt = reads_nothing(arm.facts) | only_origins(arm.facts)
    judged = [fact for fact in arm.facts.nodes if fact.node.live and fact.name not in exempt and is_compute(fact.node)]
    left = tuple(fact.name for fact in judged if fact.fate is Fate.INLINED)
    return Count(left, tuple(fact.name for fact in judged if fact.fate is Fate.UNKNOWN))


def only_origins(facts: GraphFacts) -> frozenset[str]:
    """Nodes that are all that some buffer computes: it may stand for a view of the value, and still holds the value."""
    computing = {fact.name for fact in facts.nodes if is_compute(fact.node)}
    loops = (buffer for buffer in facts.buffers if buffer.ir_class == "ComputedBuffer")
    computed = (computing.intersection(buffer.origins) for buffer in loops)
    return frozenset(name for names in computed if len(names) == 1 for name in names)


def reads_nothing(facts: GraphFacts) -> frozenset[str]:
    """Nodes whose value needs no memory access: calls without tensor inputs, and calls on such values alone."""
    free: set[str] = set()
    for fact in facts.nodes:
        if (
            fact.node.op == "call_function"
            and not _owns_extern_buffer(fact, facts)
            and free.issuperset(fact.node.inputs)
        ):
            free.add(fact.name)
    return frozenset(free)


def _owns_extern_buffer(fact: NodeFact, facts: GraphFacts) -> bool:
    """Whether the value is made by a kernel that is no loop body, such as a random seed."""
    held = facts.buffer(fact.buffer) if fact.buffer else None
    return held is not None and held.ir_class != "ComputedBuffer"


def live_users(facts: GraphFacts, name: str) -> tuple[str, ...]:
    """The live nodes that use a value, each once; the graph's output counts as one."""
    live = {fact.name for fact in facts.nodes if fact.node.live}
    fact = facts.node(name)
    return tuple(dict.fromkeys(user for user in (fact.node.users if fact else ()) if user in live or user == "output"))


def explain_inlined(base: Arm, ablated: Arm, left: Count) -> str:
    """Which values are still inlined, and why the switch does not reach them."""
    if not left.left:
        return ""
    return f"Still computed only inside other buffers' loop bodies: {joined(left.left)}."


def explain_thresholds(base: Arm, ablated: Arm, left: Count) -> str:
    """Which condition of `GraphLowering.run_node` each value fails that is still inlined."""
    if not left.left:
        return ""
    users = {name: live_users(ablated.facts, name) for name in left.left}
    single = tuple(name for name in left.left if len(users[name]) == 1)
    shared = tuple(name for name in left.left if name not in single)
    parts = [_settings_text(ablated)]
    if single:
        parts.append(_single_user_text(single, users))
    if shared:
        parts.append(f"{joined(shared)}: several users, but no reuse condition held.")
    parts.extend(text for name in left.left[:3] if (text := _recorded_text(ablated, name)))
    parts.append(_op_count_text(ablated))
    return " ".join(part for part in parts if part)


def _in_force(ablated: Arm, knob: str) -> str | None:
    return ablated.config.settings.get(full_key(knob))


def _settings_text(ablated: Arm) -> str:
    values = {knob: _in_force(ablated, knob) for knob in REALIZE_KNOBS}
    version = ablated.config.torch_version
    told = [f"{knob} = {it}" for knob, it in values.items() if it and it != known_default(full_key(knob), version)]
    return f"{' and '.join(told)} when this graph was compiled." if told else ""


def _single_user_text(single: tuple[str, ...], users: Mapping[str, tuple[str, ...]]) -> str:
    shown = ", ".join(f"{name} has 1 ({users[name][0]})" for name in single[:3])
    more = f", and so have {len(single) - 3} more" if len(single) > 3 else ""
    return (
        f"Reuse thresholds are consulted only for a value with more than one user: {shown}{more}. "
        "The read limit only hints, and the hint needs more than one nontrivial read."
    )


def _recorded_text(ablated: Arm, name: str) -> str:
    """What the capture saw lowering count for this value."""
    sidecar = ablated.facts.graph.sidecar
    root = sidecar.root if sidecar else None
    seen = next((lowering for lowering in root.lowerings if lowering.node == name), None) if root else None
    if seen is None or seen.reads is None:
        return ""
    nontrivial = f" ({seen.nontrivial_reads} nontrivial)" if seen.nontrivial_reads is not None else ""
    ops = f", ops: {seen.ops}" if seen.ops is not None else ""
    return f"Recorded for {name}: users: {seen.users}, reads: {seen.reads}{nontrivial}{ops}."


def _op_count_text(ablated: Arm) -> str:
    """The clamp came between torch 2.5 and 2.7 (`GraphLowering.run_node`)."""
    version, value = ablated.config.torch_version or "", _in_force(ablated, "realize_opcount_threshold")
    if value is None or not at_least(version, (2, 7)):
        return ""
    release = version.partition("+")[0]
    return f"The op-count limit is at least 100 in torch {release}: {value} does not split a shorter chain."


INLINING = Postcondition(
    name="inlining",
    counted="live post-grad compute nodes without a buffer of their own",
    satisfied="every live compute node already has a buffer of its own",
    earliest=Stage.LOWERING,
    needs=("fx", "pre"),
    measure=each(count_inlined),
    explain=explain_inlined,
    masked_by_fusion=True,
    next_step="Capture the arm with `--ablation inlining` in a fresh process: the hook must be in place before the "
    "first compile.",
)

REALIZE_THRESHOLDS = Postcondition(
    name="realize-thresholds",
    counted=INLINING.counted,
    satisfied=INLINING.satisfied,
    earliest=Stage.LOWERING,
    needs=INLINING.needs,
    measure=INLINING.measure,
    knobs=REALIZE_KNOBS,
    explain=explain_thresholds,
    masked_by_fusion=True,
    next_step="Use the ablation `inlining`, which realizes every value whatever its users.",
)
