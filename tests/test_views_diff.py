"""How a diff reads: one screen, settings first, repeats once, what they cost in the headline."""

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
· 1 → 0 inlined · 1 → 2 scheduler nodes · 4.0 kB → 8.0 kB read by kernels
  lowering
    ~ cos_0  ×3: inlined into buf0 → realized as buf0, fused (removed by fusion)
  scheduling
    < 1 group split into 2: op0_op1 → op0, op1
  code
    ~ cpp_fused_cos_0 body: a cpp kernel
       tmp1 = x
      -tmp2 = cos(tmp1)
      +tmp2 = sin(tmp1)

model__2: only in the new run (2 FX nodes, 1 kernel call)

model__1: equal
"""
    )


def test_old_and_new_stand_on_one_line_where_there_is_room(diff: RunDiff, show: Show) -> None:
    lines = show(DiffView(diff), width=140).splitlines()
    (fate,) = (line for line in lines if "cos_0  ×3" in line)
    assert fate.endswith("inlined into buf0 → realized as buf0, in group op0_op1 (removed by fusion)")
    assert all(len(line) <= 140 for line in lines)


def test_nodes_in_the_place_of_others_are_one_line(diff: RunDiff, show: Show) -> None:
    """Each node with what became of it is there when asked for."""
    old = Side(("sigmoid", "mul"), "", None, ("sigmoid = aten.sigmoid.default", "mul = aten.mul.Tensor"))
    new = Side(("div",), "", None, ("div = aten.div.Tensor",))
    exchange = changed(Layer.FX, "nodes", "nodes", old, new)
    graph = replace(diff, graphs=(GraphDiff("model__0", "model__0", (exchange,), BEFORE, AFTER),))
    assert "    ~ 2 nodes → 1 node: sigmoid, mul → div\n" in show(DiffView(graph))
    assert "aten.sigmoid" not in show(DiffView(graph))
    assert "-sigmoid = aten.sigmoid.default" in show(DiffView(graph, full=True))


def test_code_of_many_changes_waits_until_asked_for(diff: RunDiff, show: Show) -> None:
    """A screen full of the code of three kernels would hide the other changes."""
    kernels = [f"cpp_fused_{name}_0" for name in ("cos", "sin", "exp")]
    sides = [(Side((name,), "a", None, (f"x = {name}",)), Side((name,), "b", None, ("x = 0",))) for name in kernels]
    changes = tuple(changed(Layer.CODE, "body", "kernel", old, new) for old, new in sides)
    two, three = (replace(diff, graphs=(GraphDiff("m", "m", changes[:n], BEFORE, BEFORE),)) for n in (2, 3))
    assert "+x = 0" in show(DiffView(two))
    assert "+x = 0" not in show(DiffView(three))
    assert "+x = 0" in show(DiffView(three, full=True))


def test_long_names_and_lists_are_cut_on_the_first_screen(diff: RunDiff, show: Show) -> None:
    group = "_".join(f"op{number}" for number in range(40))
    buffers = ", ".join(f"buf{number}" for number in range(9))
    sides = Side(("cos",), f"inlined into {buffers}"), Side(("cos",), f"realized as buf0, in group {group}")
    fate = changed(Layer.LOWERING, "fate", "aten.cos.default", *sides)
    graph = replace(diff, graphs=(GraphDiff("m", "m", (fate,), BEFORE, BEFORE),))
    text = show(DiffView(graph))
    assert "inlined into buf0, buf1, buf2 … 6 more" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert group in "".join(show(DiffView(graph, full=True)).split())


def test_many_graphs_are_one_screen(diff: RunDiff, show: Show) -> None:
    """Ten that differ, of which three are told in full, and forty equal ones in one line."""
    several = [GraphDiff(f"model__{n}", f"model__{n}", (realized(n),), BEFORE, AFTER) for n in range(10)]
    equal = [GraphDiff(f"model__{n}", f"model__{n}", (), BEFORE, BEFORE) for n in range(10, 50)]
    text = show(DiffView(replace(diff, graphs=(*several, *equal))))
    assert "40 graphs: equal" in text
    assert text.count("realized as") == 3
    assert "… 4 more graphs; --full shows all" in text
    assert len(text.splitlines()) <= 40
    assert show(DiffView(replace(diff, graphs=(*several, *equal)), full=True)).count("equal") == 40


def test_changes_of_every_layer_are_one_screen(diff: RunDiff, show: Show) -> None:
    """Two graphs with a dozen unlike changes in each of two layers: fewer are told, but some of each layer."""
    lowered = [replace(realized(0), subject=f"aten.op{chr(97 + n)}.default") for n in range(12)]
    told = (*lowered, *(replace(change, layer=Layer.CODE) for change in lowered))
    graphs = tuple(GraphDiff(f"model__{n}", f"model__{n}", told, BEFORE, AFTER) for n in range(2))
    text = show(DiffView(replace(diff, graphs=graphs)))
    assert len(text.splitlines()) <= 40
    assert [text.count(line) for line in ("  lowering\n", "  code\n")] == [2, 2]
    assert text.count("more changes; --full shows all") == 4
    assert show(DiffView(replace(diff, graphs=graphs), full=True)).count("realized as") == 48


def test_sizes_that_round_to_the_same_tell_the_difference(diff: RunDiff, show: Show) -> None:
    sides = Side(("m",), "8100000"), Side(("m",), "8100400")
    cost = changed(Layer.COST, "bytes_written", "graph", *sides)
    text = show(DiffView(replace(diff, graphs=(GraphDiff("m", "m", (cost,), BEFORE, BEFORE),))))
    assert "8.1 MB (+400 bytes) written by kernels" in " ".join(text.split())


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
    assert "… 15 more changes; --full shows all" in show(DiffView(short))
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
