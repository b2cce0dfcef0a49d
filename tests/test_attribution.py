"""Whose value each buffer holds, what each kernel computes: hand-reasoned cases, and accuracy against the compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.facts import Evidence, Fate, GraphFacts, Storage
from analyzer.load import load_run
from tests.accuracy import LEVELS, measure, row, without

FIXTURES = Path(__file__).parent.parent / "fixtures"
CAPTURED = sorted(path for path in (FIXTURES / "captured").iterdir() if path.is_dir())


def facts_of(run: Path, graph: str = "", level: str = "bare") -> GraphFacts:
    """Facts of the graph whose name holds `graph`, with only a level's evidence."""
    return next(analyze(without(g, level)) for g in load_run(run).graphs if graph in g.name)


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


def test_without_a_dump_nothing_is_said_to_be_folded():
    run = load_run(FIXTURES / "captured" / "sin_cos_thresholds").graphs[0]
    facts = analyze(replace(without(run, "bare"), pre=None, post=None))
    assert fates(facts)["cos"] == Fate.UNKNOWN
    assert facts.node("cos").reason == "no IR dump: which values got buffers is not known"
    assert (facts.summary.realized, facts.summary.groups, facts.summary.bytes_read) == (None, None, None)


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
    assert {buffer.name: buffer.fx_node for buffer in facts.buffers} == recorded


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
