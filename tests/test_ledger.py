"""The inline-versus-fuse ledger: outcomes and reasons, recorded by the compiler or inferred and worded so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.facts import Fate, GraphFacts, NodeFact, Storage
from analyzer.load import load_run
from analyzer.model import FxNode
from analyzer.reasons.apart import Boundaries
from analyzer.reasons.ledger import Ledger, ledger
from analyzer.reasons.why import Reasons
from analyzer.views.ledger import LedgerView

FIXTURES = Path(__file__).parent.parent / "fixtures"


def facts_of(run: str) -> GraphFacts:
    return analyze(load_run(FIXTURES / run).graphs[0])


@pytest.fixture(scope="module")
def apart() -> GraphFacts:
    return facts_of("captured/apart-2.13")


@pytest.fixture(scope="module")
def bare(apart: GraphFacts) -> GraphFacts:
    """The same facts, as if only Inductor's own artifacts were there."""
    return replace(apart, graph=replace(apart.graph, sidecar=None))


@pytest.fixture(scope="module")
def written(apart: GraphFacts) -> Ledger:
    return ledger(apart)


def told(written: Ledger, node: str) -> tuple[str, str]:
    entry = written.entry(node)
    assert entry is not None
    return entry.told, str(entry.why)


# ------------------------------------------------------------------------------------------------ outcomes


def test_every_op_that_computes_has_an_entry(written: Ledger) -> None:
    ops = ["exp", "mul", "add", "relu", "mm", "sin", "mul_1", "sum_1", "div", "tanh"]
    assert [entry.node for entry in written.entries] == ops


def test_recorded_reasons_are_stated_as_facts(written: Ledger) -> None:
    assert told(written, "exp") == (
        "realized as buf0; fused with op1 at scheduling",
        "several users read it, and it contains an op that is expensive on CPU (2 users, 1 read, 2 ops, heavy: exp)",
    )
    assert told(written, "relu")[1] == "an extern kernel, a template or a mutation reads it (for mm)"
    assert told(written, "sum_1")[1] == "it is a reduction"


def test_why_a_shared_value_was_inlined_all_the_same(written: Ledger) -> None:
    """`twice` has two users, but one read and three ops are under every limit."""
    assert told(written, "mul") == (
        "inlined into buf1 and buf3 (recomputed 2×)",
        "2 users read it, but Inductor finds that it is not worth a buffer (1 read, limit 4, 3 ops)",
    )
    assert told(written, "add") == ("inlined into buf1 (1 user)", "it has a single user")


def test_inferred_reasons_are_said_to_be_consistent_only(bare: GraphFacts) -> None:
    written = ledger(bare)
    assert told(written, "exp")[1] == "consistent with: 2 users read it (add, mul_1)"
    assert told(written, "relu")[1] == (
        "consistent with: an extern kernel, a template or a concatenation reads it (op2)"
    )
    assert told(written, "sum_1")[1] == "consistent with: it is a reduction"
    assert told(written, "add")[1] == "consistent with: it has a single user"
    assert all(entry.why is None or not entry.why.recorded for entry in written.entries)
    assert not any(pair.why.recorded for pair in written.apart)


def test_the_ablation_is_the_reason_where_it_was_at_work() -> None:
    entry = ledger(facts_of("captured/sin_cos_inlining")).entry("cos")
    assert entry is not None
    assert entry.why is not None
    assert entry.why.recorded
    assert entry.why.text == "the ablation `inlining` realized it"


def test_why_thresholds_of_zero_do_not_realize_a_value_with_one_user() -> None:
    """The founding example: the hint came, but cos reads one buffer, and the rules for reuse want several users."""
    entry = ledger(facts_of("captured/sin_cos_thresholds")).entry("cos")
    assert entry is not None
    assert entry.outcome == "inlined into buf0 (1 user)"
    assert entry.why is not None
    assert entry.why.recorded
    assert entry.why.text == (
        "it has a single user; a hint proposed a buffer, which takes more than one nontrivial read (it has 1)"
    )


def test_limits_of_the_run_are_named_where_nothing_else_fits() -> None:
    """On torch 2.5 the same thresholds do realize cos; no user, output or library call explains it."""
    entry = ledger(facts_of("ablations/cpu-2.5/realize-thresholds/sincos")).entry("cos")
    assert entry is not None
    assert entry.outcome == "realized as buf0"
    assert str(entry.why).startswith("consistent with: the run sets limits of its own (realize_")
    assert "realize_opcount_threshold = 0" in str(entry.why)


def test_a_removed_buffer_and_a_dead_node(sin_cos: GraphFacts) -> None:
    removed = replace(sin_cos.buffers[0], storage=Storage.REMOVED)
    dead = NodeFact(FxNode("neg", "call_function", "aten.neg.default", live=False), Fate.FOLDED, reason="dead")
    written = ledger(replace(sin_cos, buffers=(removed,), nodes=(*sin_cos.nodes, dead)))
    assert [entry.node for entry in written.entries] == ["cos", "sin"]
    assert told(written, "sin")[0] == "realized as buf0; removed, never stored"


def test_an_incomplete_recording_is_not_trusted(apart: GraphFacts) -> None:
    sidecar = apart.graph.sidecar
    assert sidecar is not None
    broken = replace(sidecar, graphs=tuple(replace(graph, complete=False) for graph in sidecar.graphs))
    found = Reasons(replace(apart, graph=replace(apart.graph, sidecar=broken))).realized(apart.buffers[0])
    assert not found.recorded


# ------------------------------------------------------------------------------------------------ why not fused


def why(facts: GraphFacts, first: str, second: str) -> tuple[str, str]:
    groups = {group.name: group for group in facts.groups}
    pair = Boundaries(facts).between(groups[first], groups[second])
    return str(pair.why), str(pair.likely)


def test_inductors_own_reason_and_what_it_means(apart: GraphFacts) -> None:
    """exp and relu feed the matmul op2, whose result div needs: op2 would lie between."""
    assert why(apart, "op0_op1", "op3_op4") == (
        "Inductor says: intermediate nodes between node1 & node2",
        "consistent with: op2 lies between them: joining them would create a cycle",
    )


def test_a_library_call_was_never_considered(apart: GraphFacts) -> None:
    assert why(apart, "op0_op1", "op2") == (
        "the scheduler never considered the pair",
        "consistent with: op2 is a library call (extern_kernels.mm), which joins no loop",
    )


def test_dropped_pairs_leave_only_a_guess(apart: GraphFacts) -> None:
    sidecar = apart.graph.sidecar
    assert sidecar is not None
    full = replace(sidecar, graphs=tuple(replace(graph, pairs_dropped=7, pairs=()) for graph in sidecar.graphs))
    text, _ = why(replace(apart, graph=replace(apart.graph, sidecar=full)), "op0_op1", "op2")
    assert text.startswith("consistent with: ")


def test_guesses_without_a_recording(bare: GraphFacts) -> None:
    assert why(bare, "op0_op1", "op3_op4")[0] == (
        "consistent with: op2 lies between them: joining them would create a cycle"
    )
    assert why(bare, "op0_op1", "op5")[0] == (
        "consistent with: they share no data, and Inductor only joins groups that touch a common buffer"
    )


def test_different_loops_and_devices(bare: GraphFacts) -> None:
    """op5 reads w, and so does the matmul; make it read buf0 too, and nothing but its loop is in the way."""
    pre = bare.graph.pre
    assert pre is not None
    op0, op5 = (next(node for node in pre.nodes if node.name == name) for name in ("op0", "op5"))
    reader = replace(op5, met=(*op5.met, op0.writes[0]))
    nodes = tuple(reader if node.name == "op5" else node for node in pre.nodes)
    graph = replace(bare.graph, pre=replace(pre, nodes=nodes))
    facts = replace(bare, graph=graph)
    assert why(facts, "op0_op1", "op5")[0] == (
        "consistent with: their loops differ: op0_op1 runs over ((128,), ()), op5 over ((256,), ())"
    )
    moved = tuple(
        replace(b, layout=replace(b.layout, device="cuda:0")) if b.name == "buf5" and b.layout else b
        for b in facts.buffers
    )
    assert why(replace(facts, buffers=moved), "op0_op1", "op5")[0] == (
        "consistent with: they run on different devices (cpu, cuda:0)"
    )


def test_pairs_of_loops_come_before_library_calls(written: Ledger) -> None:
    assert [(pair.first, pair.second) for pair in written.apart] == [
        ("op0_op1", "op3_op4"),
        ("op0_op1", "op2"),
        ("op2", "op3_op4"),
    ]


# ------------------------------------------------------------------------------------------------ view


def test_the_view_tells_reasons_pairs_and_costs(show: Callable[..., str], apart: GraphFacts) -> None:
    text = show(LedgerView(apart), 200)
    assert "  mul  inlined into buf1 and buf3 (recomputed 2×)\n    because 2 users read it, but" in text
    assert "  op0_op1 and op3_op4 (both touch arg0_1, buf0)\n    Inductor says: intermediate nodes" in text
    assert "  mul  128 elements again, in buf1, buf3; a buffer would move 1.5 kB\n" in text
    assert "  op0_op1  1.0 kB (1.5 kB instead of 2.6 kB)\n" in text


def test_the_view_is_deaf_to_markup(show: Callable[..., str], sin_cos: GraphFacts) -> None:
    hostile = replace(sin_cos.nodes[1], node=replace(sin_cos.nodes[1].node, name="[bold]x[/bold]\x1b[31m"))
    text = show(LedgerView(replace(sin_cos, nodes=(hostile,))), 100)
    assert "[bold]x[/bold]\\x1b[31m" in text
