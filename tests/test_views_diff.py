"""How a diff reads: one screen, settings first, repeats once, side by side where there is room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from analyzer.diff.records import (
    Change,
    ConfigChange,
    EnvironmentChange,
    GraphDiff,
    Kind,
    Layer,
    RunDiff,
    Side,
)
from analyzer.facts import Summary
from analyzer.model import Location
from analyzer.views.diff import DiffView
from analyzer.views.json import diff_document, dumps

Show = Callable[..., str]

BEFORE = Summary(2, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 4000, 4000, 4000)
AFTER = replace(BEFORE, realized=2, inlined=0, scheduler_nodes=2, bytes_read=8000)
CONFIG = Location("/home/user/run/model__0_inference_0.0/fx_graph_runnable.py", 27)


def changed(layer: Layer, aspect: str, subject: str, old: Side, new: Side, kind: Kind = Kind.CHANGED) -> Change:
    return Change(kind, layer, aspect, subject, old, new)


def realized(number: int) -> Change:
    node = f"cos_{number}"
    old = Side((node,), f"inlined into buf{number}")
    new = Side((node,), f"realized as buf{number}, in group op0_op1 (removed by fusion)")
    return changed(Layer.LOWERING, "fate", "aten.cos.default", old, new)


@pytest.fixture
def diff() -> RunDiff:
    """Three equal layers, one split, a kernel with another body, and what it costs."""
    one, other = "tmp2 = cos(tmp1)", "tmp2 = sin(tmp1)"
    kernel = ("cpp_fused_cos_0",)
    changes = (
        *(realized(number) for number in range(3)),
        changed(
            Layer.SCHEDULING, "members", "group", Side(("op0_op1",), "op0_op1"), Side(("op0", "op1"), ""), Kind.SPLIT
        ),
        changed(
            Layer.CODE,
            "body",
            "kernel",
            Side(kernel, "a cpp kernel", None, ("tmp1 = x", one)),
            Side(kernel, "a cpp kernel", None, ("tmp1 = x", other)),
        ),
        changed(Layer.COST, "bytes_read", "graph", Side(("model__0",), "4000"), Side(("model__0",), "8000")),
    )
    config = ConfigChange("torch._inductor.config.max_fusion_size", "64", "1", None, CONFIG)
    graphs = (
        GraphDiff("model__0", "model__0", changes, BEFORE, AFTER),
        GraphDiff("model__1", "model__1", (), BEFORE, BEFORE),
        GraphDiff(None, "model__2", (), None, BEFORE),
    )
    return RunDiff("base", "ablated", (config,), (), graphs)


def test_a_diff_on_a_narrow_terminal(diff: RunDiff, show: Show) -> None:
    assert (
        show(DiffView(diff))
        == """\
Diff base → ablated
  max_fusion_size  64 → 1  fx_graph_runnable.py:27

model__0: 6 changes (3 lowering, 1 scheduling, 1 code, 1 cost) · 1 → 2 realized
· 1 → 0 inlined · 1 → 2 scheduler nodes
  lowering
    ~ cos_0 (aten.cos.default)  ×3
      - inlined into buf0
      + realized as buf0, in group op0_op1 (removed by fusion)
  scheduling
    < 1 group split into 2: op0_op1 → op0, op1
  code
    ~ cpp_fused_cos_0 body: a cpp kernel → a cpp kernel
       tmp1 = x
      -tmp2 = cos(tmp1)
      +tmp2 = sin(tmp1)
  cost
    ~ read by kernels: 4.0 kB → 8.0 kB

model__1: equal

model__2: only in the new run
"""
    )


def test_old_and_new_stand_side_by_side_where_there_is_room(diff: RunDiff, show: Show) -> None:
    lines = show(DiffView(diff), width=140).splitlines()
    (fate,) = (line for line in lines if "cos_0 (aten" in line)
    assert fate.index("inlined into buf0") < fate.index("realized as buf0")
    (cost,) = (line for line in lines if "read by kernels" in line)
    assert cost.index("8.0 kB") == fate.index("realized as buf0")
    assert all(len(line) <= 140 for line in lines)


def test_the_summary_is_one_line_per_graph(diff: RunDiff, show: Show) -> None:
    text = show(DiffView(diff, summary=True), width=200)
    assert "model__0: 6 changes" in text
    assert "cos_0" not in text


def test_everything_is_there_when_asked_for(diff: RunDiff, show: Show) -> None:
    assert "also cos_1, cos_2" in show(DiffView(diff, full=True))


def test_long_lists_are_cut_and_say_so(diff: RunDiff, show: Show) -> None:
    many = tuple(
        changed(
            Layer.FX,
            "node",
            f"aten.op{chr(97 + number)}.default",
            Side(),
            Side((f"op{chr(97 + number)}",), "x"),
            Kind.ADDED,
        )
        for number in range(20)
    )
    short = replace(diff, graphs=(GraphDiff("model__0", "model__0", many, BEFORE, AFTER),))
    assert "… 12 more changes; --full shows all" in show(DiffView(short))
    assert "more changes" not in show(DiffView(short, full=True))


def test_what_makes_a_comparison_unfair_comes_first(diff: RunDiff, show: Show) -> None:
    caches = EnvironmentChange("caches", "cold", "warm", "what is missing is no decision")
    lines = show(DiffView(replace(diff, environment=(caches,)))).splitlines()
    assert lines[1] == "Unlike runs: what is missing is no decision (caches: cold → warm)"


def test_equal_runs_say_so(show: Show) -> None:
    equal = RunDiff("one", "two", graphs=(GraphDiff("model__0", "model__0", (), BEFORE, BEFORE),))
    assert show(DiffView(equal)) == (
        "Diff one → two\n  Settings and surroundings are equal, as far as the runs record them.\n\nmodel__0: equal\n"
    )


def test_what_was_not_compared_is_not_called_equal(show: Show) -> None:
    graph = GraphDiff("model__0", "model__0", (), BEFORE, BEFORE, ("the new run does not tell its groups",))
    text = show(DiffView(RunDiff("one", "two", graphs=(graph,))))
    assert "model__0: no difference found" in text
    assert "Note: the new run does not tell its groups" in text


def test_artifact_text_is_harmless(show: Show) -> None:
    evil = Side(("\x1b[31mred[/b]",), "[bold]x\x1b[0m\u202e", None, ("\x1b[2J",))
    change = changed(Layer.LOWERING, "fate", "aten.[red]", evil, replace(evil, text="y"))
    graph = GraphDiff("model\x1b", "model\x1b", (change,), BEFORE, AFTER)
    config = ConfigChange("a\x1b", "b\x1b", "[c]")
    hostile = RunDiff("r\x1b", "s", (config,), (EnvironmentChange("e\x1b", "\x1b", "f", "w\x1b"),), (graph,))
    for width in (80, 140):
        text = show(DiffView(hostile, full=True), width=width)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]" in text
    assert "\x1b" not in dumps(diff_document(hostile))
