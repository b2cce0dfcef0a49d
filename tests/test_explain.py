"""`explain`: what names denote, the way through the layers, and why two things are not one kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest

import cli
from analyzer.analyze import analyze
from analyzer.errors import UsageError
from analyzer.explain import Explanation, Step, explain, explain_pair
from analyzer.facts import GraphFacts
from analyzer.load import load_run
from analyzer.views.explain import ExplainView, PairView, explain_document, pair_document

FIXTURES = Path(__file__).parent.parent / "fixtures"
APART = FIXTURES / "captured/apart-2.13"
LAST = "cpp_fused_div_mul_sin_sum_tanh_1"
Show = Callable[..., str]


@pytest.fixture(scope="module")
def facts() -> list[GraphFacts]:
    return [analyze(graph) for graph in load_run(APART).graphs]


def one(facts: Sequence[GraphFacts], name: str) -> Explanation:
    (found,) = explain(facts, name)
    return found


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from walk(step.next)


def keys(steps: Sequence[Step], kind: str) -> list[str]:
    return [step.key[1] for step in walk(steps) if step.key[0] == kind]


# -------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exp", "fx_node"),
        ("buf0", "buffer"),
        ("op1", "scheduler_node"),
        ("op0_op1", "group"),
        (LAST, "kernel"),
        (f"{LAST}:3", "kernel"),
        ("extern_kernels.mm", "kernel"),
        ("truediv", "pre_op"),
        ("apart.py:9", "source"),
        ("./apart.py:09", "source"),
    ],
)
def test_a_name_denotes_one_thing(facts: list[GraphFacts], name: str, kind: str) -> None:
    assert one(facts, name).subject.key[0] == kind


def test_an_fx_node_comes_before_the_pre_grad_op_of_the_same_name(facts: list[GraphFacts]) -> None:
    assert one(facts, "tanh").subject.key == ("fx_node", "tanh")


@pytest.mark.parametrize("name", ["part.py:9", "apart.py:99", "apart.py", "9", "", "op", ":9"])
def test_parts_of_names_denote_nothing(facts: list[GraphFacts], name: str) -> None:
    with pytest.raises(UsageError, match="nothing in this run is named"):
        explain(facts, name)


def test_an_unknown_name_gets_near_ones(facts: list[GraphFacts]) -> None:
    with pytest.raises(UsageError) as caught:
        explain(facts, "mul_11")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("near names: mul_1, mul")


def test_every_graph_that_has_the_name_is_explained(facts: list[GraphFacts]) -> None:
    other = replace(facts[0], graph=replace(facts[0].graph, name="model__1_inference_1.1"))
    found = explain([facts[0], other], "buf0")
    assert [explanation.graph for explanation in found] == ["model__0_inference_0.0", "model__1_inference_1.1"]


# --------------------------------------------------------------------------------------------------- through the layers


def test_a_line_down_to_its_kernels(facts: list[GraphFacts]) -> None:
    became = one(facts, "apart.py:9").became
    assert keys(became, "pre_op") == ["twice"]
    assert keys(became, "fx_node") == ["mul"]
    assert keys(became, "buffer") == ["buf1", "buf3"]
    assert keys(became, "scheduler_node") == ["op1", "op3"]
    assert keys(became, "group") == ["op0_op1", "op3_op4"]
    assert keys(became, "kernel") == ["cpp_fused_add_exp_mul_relu_0", LAST]


def test_a_kernel_up_to_its_lines(facts: list[GraphFacts]) -> None:
    came_from = one(facts, LAST).came_from
    assert keys(came_from, "group") == ["op3_op4", "op5"]
    assert set(keys(came_from, "fx_node")) == {"mul", "mul_1", "sum_1", "sin", "div", "tanh"}
    lines = {name.rpartition("/")[2] for name in keys(came_from, "source")}
    assert lines == {"apart.py:9", "apart.py:11", "apart.py:12"}


def test_links_tell_inlined_from_stored(facts: list[GraphFacts]) -> None:
    steps = one(facts, "buf1").came_from
    assert {step.key[1]: step.link for step in steps} == {
        "add": "inlined_into",
        "mul": "inlined_into",
        "relu": "lowers_to",
    }


def test_every_step_below_the_source_says_where_it_stands(facts: list[GraphFacts]) -> None:
    """Lines as an editor counts them; the text there names the thing."""
    explanation = one(facts, "exp")
    steps = [explanation.subject, *walk(explanation.became)]
    found = {}
    for step in steps:
        assert step.told.at is not None, step.key
        line = Path(step.told.at.file).read_text(encoding="utf-8").splitlines()[step.told.at.line - 1]
        found[step.key] = line[step.told.at.column - 1 :]
    assert found["fx_node", "exp"].startswith('exp: "f32[8, 16]" = ')
    assert found["buffer", "buf0"] == "buf0: ComputedBuffer"
    assert found["scheduler_node", "op0"] == "op0: SchedulerNode(ComputedBuffer)"
    assert found["group", "op0_op1"].startswith("op0_op1: FusedSchedulerNode(")
    assert found["kernel", "cpp_fused_add_exp_mul_relu_0"].startswith("cpp_fused_add_exp_mul_relu_0 = ")


def test_what_was_told_is_not_told_again(facts: list[GraphFacts]) -> None:
    """Two nodes of line 12 end up in the kernel: its second mention stops there."""
    lines = [step for step in walk(one(facts, LAST).came_from) if step.key[1].endswith("apart.py:12")]
    assert [step.again for step in lines] == [False, True, True]
    assert all(not step.next for step in lines)


def test_the_group_of_a_buffer_and_its_neighbours(facts: list[GraphFacts]) -> None:
    assert [(pair.first, pair.second) for pair in one(facts, "buf1").apart] == [
        ("op0_op1", "op3_op4"),
        ("op0_op1", "op2"),
    ]
    assert one(facts, "exp").apart == ()


# ----------------------------------------------------------------------------------------------------------- two names


def test_two_names_in_one_group(facts: list[GraphFacts]) -> None:
    (pair,) = explain_pair(facts, "exp", "relu")
    assert pair.together == ("op0_op1",)
    assert pair.apart == ()


def test_two_names_in_two_groups(facts: list[GraphFacts]) -> None:
    (pair,) = explain_pair(facts, "exp", "sum_1")
    assert pair.together == ()
    assert [(apart.first, apart.second) for apart in pair.apart] == [("op0_op1", "op3_op4")]
    assert pair.apart[0].why.text == "Inductor says: intermediate nodes between node1 & node2"
    assert pair.one_function == ()


def test_one_function_is_not_one_group(facts: list[GraphFacts], show: Show) -> None:
    """The C++ backend packs op5 into the function of op3_op4, in loops of its own."""
    (pair,) = explain_pair(facts, "op4", "op5")
    assert pair.one_function == (LAST,)
    assert (
        f"scheduler node op4 and scheduler node op5 are not in one group; one function runs both groups, each in loops "
        f"of its own: {LAST}\n" in show(PairView([pair]), 200)
    )


def test_an_inlined_op_may_be_in_several_groups(facts: list[GraphFacts], show: Show) -> None:
    (pair,) = explain_pair(facts, "mul", "relu")
    assert pair.first_groups == ("op0_op1", "op3_op4")
    assert pair.together == ("op0_op1",)
    assert "meet in group op0_op1, and are computed elsewhere too" in show(PairView([pair]), 100)


def test_an_input_is_in_no_group(facts: list[GraphFacts], show: Show) -> None:
    pairs = explain_pair(facts, "arg0_1", "relu")
    assert "FX node arg0_1 is in no group: nothing is computed for it" in show(PairView(pairs), 100)


def test_names_of_different_graphs_never_meet(facts: list[GraphFacts], sin_cos: GraphFacts) -> None:
    with pytest.raises(UsageError, match="'relu' and 'cos' are in different graphs"):
        explain_pair([facts[0], sin_cos], "relu", "cos")
    with pytest.raises(UsageError, match="nothing in this run is named 'nope'"):
        explain_pair(facts, "relu", "nope")


# ---------------------------------------------------------------------------------------------------------------- views


def test_the_tree_at_80_columns(facts: list[GraphFacts], show: Show) -> None:
    text = show(ExplainView(explain(facts, "buf3")), 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "buffer buf3  ComputedBuffer float32[8, 1] on cpu; 32 bytes; allocated; holds" in text
    assert "├── FX node mul (inlined)  aten.mul.Tensor float32[8, 16]: inlined into buf1" in text
    assert "because it is a reduction\nat ir_pre_fusion.txt:87\n" in text
    assert "    Inductor says: intermediate nodes between node1 & node2\n" in text


def test_names_from_artifacts_are_harmless(sin_cos: GraphFacts, show: Show) -> None:
    hostile = replace(sin_cos.nodes[1], source_ops=("[bold]y[/bold]\x1b[31m",))
    facts = replace(sin_cos, nodes=(sin_cos.nodes[0], hostile, sin_cos.nodes[2]))
    text = show(ExplainView(explain([facts], "cos")), 100)
    assert "pre-grad op [bold]y[/bold]\\x1b[31m\n" in text


def test_the_documents_hold_the_same(facts: list[GraphFacts]) -> None:
    (told,) = explain_document(explain(facts, "buf0"))["explanations"]
    assert told["subject"]["why"]["recorded"] is True
    assert told["became"][0]["link"] == "writes"
    assert told["became"][0]["next"][0]["name"] == "op0_op1"
    assert told["subject"]["at"][0]["line"] == 8
    (pair,) = pair_document(explain_pair(facts, "exp", "sum_1"))["pairs"]
    assert pair["apart"][0]["likely"] == "op2 lies between them: joining them would create a cycle"


# ----------------------------------------------------------------------------------------------------- the command line


def test_the_command_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(APART), "relu", "--no-color"]) == 0
    assert "FX node relu  aten.relu.default" in capsys.readouterr().out
    assert cli.main(["explain", str(APART), "relu", "mm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["together"] == []


def test_the_command_fails_on_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(APART), "relux"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing in this run is named 'relux'" in said.err
    assert "near names: relu" in said.err


@pytest.mark.parametrize("form", ["graphml", "dot", "json"])
def test_the_command_exports(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(APART), "--to", form]) == 0
    printed = capsys.readouterr().out
    assert cli.main(["export", str(APART), "--to", form, "--out", str(tmp_path / "graph")]) == 0
    assert (tmp_path / "graph").read_text(encoding="utf-8") == printed
    assert "buf0" in printed


def test_an_export_that_cannot_be_written_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(APART), "--to", "json", "--out", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_exported_graphml_opens_in_networkx(tmp_path: Path) -> None:
    cli.main(["export", str(APART), "--to", "graphml", "--out", str(tmp_path / "run.graphml")])
    graph = nx.read_graphml(tmp_path / "run.graphml", force_multigraph=True)
    assert {data["kind"] for _, data in graph.nodes(data=True)} >= {"source", "fx_node", "buffer", "kernel"}
