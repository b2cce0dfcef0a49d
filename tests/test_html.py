"""The pages: what stands in them, what lights up together, and that artifact text stays text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cli
from analyzer.analyze import analyze
from analyzer.diff.compare import diff_runs
from analyzer.facts import BufferFact, Fate, GraphFacts, GroupFact, KernelFact, NodeFact
from analyzer.lab.records import (
    ArmResult,
    ArmRun,
    ArmSpec,
    ArmTime,
    LabResult,
    Ratio,
    Role,
    Script,
    ScriptResult,
    Status,
)
from analyzer.load import load_run
from analyzer.model import CompiledGraph, Dep, DumpBuffer, DumpNode, FxNode, IrDump, Run, artifact_of
from analyzer.verdict import AuditResult, Citation, GraphAudit, Rung, RungName, Verdict
from analyzer.views.html.ablate import ablate_page
from analyzer.views.html.audit import audit_page
from analyzer.views.html.layers import Layer, LayeredGraph, layered
from analyzer.views.html.layout import BEND, place
from analyzer.views.html.ledger import ROWS, Tables
from analyzer.views.html.notebook import Display, load_ipython_extension
from analyzer.views.html.page import embedded
from analyzer.views.html.picture import WINDOW, group_graph, pictures
from analyzer.views.html.plot import plot
from analyzer.views.html.report import report_page

ROOT = Path(__file__).parent.parent
MLP = ROOT / "fixtures/runs/cpu-2.13/c11_mlp_train"
ARMS = ROOT / "fixtures/ablations/cpu-2.13"
HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\u202e`&"


class Page(HTMLParser):
    """What a browser makes of a page: its tags, its text, and what its script and style blocks hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and self.cdata_elem:
            self.blocks.append((self.tags[-1][0], data))
        else:
            self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.tags if found == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def names(graph: LayeredGraph, number: int) -> set[str]:
    """Everything on the path of a row, as the page's script finds it: all that it leads to and all that leads to it."""
    whole = nx.DiGraph((tail, head) for tail, heads in enumerate(graph.below) for head in heads)
    whole.add_nodes_from(range(len(graph.items)))
    on_path = nx.descendants(whole, number) | nx.ancestors(whole, number)
    return {graph.items[other].name for other in on_path}


def number(graph: LayeredGraph, layer: Layer, name: str) -> int:
    return next(item.number for item in graph.items if (item.layer, item.name) == (layer, name))


# -------------------------------------------------------------------------------------------------------------- paths


def test_a_path_leads_from_the_line_to_the_kernel(sin_cos: GraphFacts) -> None:
    graph = layered(sin_cos)
    assert names(graph, number(graph, Layer.SOURCE, "/home/user/demo.py:8")) == {
        "cos",
        "buf0",
        "op0",
        "cpp_fused_cos_sin_0",
    }
    everything = {item.name for item in graph.items} - {"arg0_1", "cpp_fused_cos_sin_0"}
    assert names(graph, number(graph, Layer.KERNEL, "cpp_fused_cos_sin_0")) == everything


def test_ops_of_one_kernel_do_not_light_each_other(sin_cos: GraphFacts) -> None:
    graph = layered(sin_cos)
    assert "cos" not in names(graph, number(graph, Layer.FX_NODE, "sin"))


def test_without_ir_dumps_an_op_leads_straight_to_its_kernel(sin_cos: GraphFacts) -> None:
    node = replace(sin_cos.nodes[1], fate=Fate.UNKNOWN, inlined_into=())
    graph = layered(replace(sin_cos, nodes=(node,), buffers=(), groups=(), scheduler_nodes=()))
    assert names(graph, number(graph, Layer.FX_NODE, "cos")) == {"/home/user/demo.py:8", "cpp_fused_cos_sin_0"}


def test_ops_without_a_line_come_from_their_pre_grad_op(sin_cos: GraphFacts) -> None:
    node = replace(sin_cos.nodes[1], node=replace(sin_cos.nodes[1].node, source=None))
    graph = layered(replace(sin_cos, nodes=(node,)))
    assert [item.name for item in graph.column(Layer.SOURCE)] == ["y"]
    assert "cos" in names(graph, number(graph, Layer.SOURCE, "y"))


def test_every_attributed_op_of_a_real_run_reaches_a_kernel() -> None:
    facts = analyze(load_run(MLP).graphs[0])
    graph = layered(facts)
    kernels = {item.name for item in graph.column(Layer.KERNEL)}
    computing = [fact for fact in facts.nodes if fact.kernels]
    assert len(computing) == 5
    for fact in computing:
        assert set(fact.kernels) <= names(graph, number(graph, Layer.FX_NODE, fact.name)) & kernels


def test_the_page_embeds_the_same_connections(sin_cos: GraphFacts, cold_run: Run) -> None:
    page = Page(report_page(cold_run, [sin_cos]))
    (data,) = [json.loads(text) for tag, text in page.blocks if text.startswith('{"below"')]
    graph = layered(sin_cos)
    assert [tuple(heads) for heads in data["below"]] == list(graph.below)
    rows = [attributes["id"] for attributes in page.named("li") if attributes.get("role") == "option"]
    assert rows == [f"0-{item.number}" for layer in Layer for item in graph.column(layer)]


# ------------------------------------------------------------------------------------------------------------ pictures


def chain_of(groups: int, *skips: tuple[int, int]) -> GraphFacts:
    """Groups op0, op1, ...: each reads the buffer of the one before it, and what the skips say."""
    reads: dict[int, list[int]] = {at: [at - 1] if at else [] for at in range(groups)}
    for tail, head in skips:
        reads[head].append(tail)
    leaves = tuple(
        DumpNode(
            f"op{at}",
            "SchedulerNode",
            ("ComputedBuffer",),
            unmet=tuple(Dep("MemoryDep", f"buf{tail}") for tail in reads[at]),
            buffers=(DumpBuffer(f"buf{at}", "ComputedBuffer", None),),
        )
        for at in range(groups)
    )
    dump = IrDump(artifact_of("ir_pre_fusion.txt", "x\n"), leaves)
    return GraphFacts(
        CompiledGraph("big", "inference", "big", pre=dump, post=dump),
        nodes=tuple(
            NodeFact(FxNode(f"n{at}", "call_function", "aten.add"), Fate.REALIZED, f"buf{at}") for at in range(groups)
        ),
        buffers=tuple(
            BufferFact(f"buf{at}", f"op{at}", "ComputedBuffer", origins=(f"n{at}",), group=f"op{at}")
            for at in range(groups)
        ),
        scheduler_nodes=leaves,
        groups=tuple(GroupFact(f"op{at}", "SchedulerNode", (f"op{at}",), (f"buf{at}",), "k") for at in range(groups)),
        kernels=(KernelFact("k", "cpp", groups=tuple(f"op{at}" for at in range(groups))),),
    )


def test_a_picture_has_a_line_per_reader() -> None:
    (picture,) = pictures(chain_of(4, (0, 2), (0, 3)))
    assert {(line.tail, line.head) for line in picture.lines} == {
        ("op0", "op1"),
        ("op1", "op2"),
        ("op2", "op3"),
        ("op0", "op2"),
        ("op0", "op3"),
    }
    tops = [box.y for box in picture.boxes]
    assert tops == sorted(set(tops))
    assert all(0 <= box.x < picture.width and 0 <= box.y < picture.height for box in picture.boxes)


def test_a_large_graph_is_cut_into_pictures_that_say_what_is_outside() -> None:
    facts = chain_of(2 * WINDOW + 5, (0, WINDOW + 3))
    drawn = pictures(facts)
    assert [(picture.first, picture.last) for picture in drawn] == [(1, 60), (61, 120), (121, 125)]
    outside = {box.name: box.outside for picture in drawn for box in picture.boxes if box.outside}
    assert outside[f"op{WINDOW + 3}"] == "reads op0"
    assert outside["op0"] == f"is read by op{WINDOW + 3}"
    assert outside[f"op{WINDOW}"] == f"reads op{WINDOW - 1}"


def test_what_is_weak_or_unknown_draws_no_line(sin_cos: GraphFacts) -> None:
    assert list(group_graph(sin_cos).edges) == []
    facts = chain_of(2)
    weak = replace(facts.scheduler_nodes[1], unmet=(Dep("WeakDep", "buf0"),))
    dump = IrDump(facts.graph.pre.artifact, (facts.scheduler_nodes[0], weak))  # type: ignore[union-attr]
    graph = replace(facts.graph, pre=dump, post=dump)
    assert list(group_graph(replace(facts, graph=graph, scheduler_nodes=dump.nodes)).edges) == []


@given(st.sets(st.tuples(st.integers(0, 14), st.integers(0, 14)).filter(lambda edge: edge[0] < edge[1]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_boxes_never_overlap_and_lines_lead_down(edges: set[tuple[int, int]]) -> None:
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(str(node) for node in range(15))
    graph.add_edges_from((str(tail), str(head)) for tail, head in sorted(edges))
    placed = place(graph)
    rows: dict[float, list[float]] = {}
    for x, y in placed.boxes.values():
        rows.setdefault(y, []).append(x)
    for row in rows.values():
        row.sort()
        assert all(right - left >= 1 - 1e-9 for left, right in pairwise(row))
        assert row[0] >= -1e-9
    for (tail, head), points in placed.paths.items():
        assert (points[0], points[-1]) == (placed.boxes[tail], placed.boxes[head])
        assert [y for _, y in points] == [points[0][1] + step for step in range(len(points))]
        for x, y in points[1:-1]:  # a bend goes beside the boxes of its layer
            assert all(abs(x - box) >= (1 + BEND) / 2 - 1e-9 for box in rows.get(y, ()))


# ----------------------------------------------------------------------------------------------------- untrusted text


def hostile_run(facts: GraphFacts) -> tuple[Run, GraphFacts]:
    """The founding example with every text that an artifact decides replaced by one that means harm."""
    node = facts.nodes[1]
    site = replace(node.node.source, file=HOSTILE, code=HOSTILE, function=HOSTILE)  # type: ignore[type-var]
    bad = replace(node, node=replace(node.node, name=HOSTILE, target=HOSTILE, source=site), reason=HOSTILE)
    kernel = replace(facts.kernels[0], name=HOSTILE, backend=HOSTILE)
    group = replace(facts.groups[0], name=HOSTILE, node_class=HOSTILE, members=(HOSTILE, HOSTILE), kernel=HOSTILE)
    buffer = replace(
        facts.buffers[0], name=HOSTILE, ir_class=HOSTILE, group=HOSTILE, reason=HOSTILE, origins=(HOSTILE,)
    )
    graph = replace(facts.graph, name=HOSTILE, kind=HOSTILE)
    worse = replace(facts, graph=graph, nodes=(bad,), buffers=(buffer,), groups=(group,), kernels=(kernel,))
    return Run(HOSTILE, (graph,), HOSTILE, notes=(HOSTILE,)), worse


def assert_harmless(text: str) -> None:
    page = Page(text)
    assert page.named("img") == []
    assert [attributes for attributes in page.named("script") if attributes.get("type") != "application/json"] == [{}]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    assert "alert(1)" in page.text


def test_hostile_text_of_a_run_stays_text(sin_cos: GraphFacts) -> None:
    run, facts = hostile_run(sin_cos)
    text = report_page(run, [facts])
    assert_harmless(text)
    assert "</script><script>" not in text
    data = [json.loads(block) for tag, block in Page(text).blocks if block.startswith('{"below"')]
    assert any("alert(1)" in word for told in data[0]["told"] for word in told)


def test_hostile_text_of_an_audit_stays_text() -> None:
    rungs = (Rung(RungName.APPLIED, False, (Citation(HOSTILE, 3, HOSTILE),)),)
    graph = GraphAudit(HOSTILE, Verdict.INERT, HOSTILE, HOSTILE, rungs, counted=HOSTILE, left_after=(HOSTILE,))
    assert_harmless(audit_page(AuditResult(HOSTILE, Verdict.INERT, HOSTILE, (graph,), (HOSTILE,))))


@given(st.text())
def test_embedded_data_says_the_same_and_ends_no_block(text: str) -> None:
    told = str(embedded({"told": text}))
    assert json.loads(told) == {"told": text}
    assert not set("<>&") & set(told)
    assert told.isascii()


def test_the_policy_allows_the_own_script_and_style_and_nothing_else(sin_cos: GraphFacts, cold_run: Run) -> None:
    text = report_page(cold_run, [sin_cos])
    page = Page(text)
    policy = next(a["content"] for a in page.named("meta") if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (block,) = [data for found, data in page.blocks if found == tag and not data.startswith("{")]
        digest = b64encode(sha256(block.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text) is None
    assert "http://" not in text
    assert "https://" not in text


# --------------------------------------------------------------------------------------------------- what pages tell


def test_a_report_page_shows_all_layers_of_every_graph() -> None:
    run = load_run(MLP)
    facts = [analyze(graph) for graph in run.graphs]
    page = Page(report_page(run, facts))
    assert [a.get("data-g") for a in page.named("section") if a.get("class") == "graph"] == ["0", "1"]
    assert [a.get("hidden", "shown") for a in page.named("section") if a.get("class") == "graph"] == ["shown", None]
    for graph in facts:
        for fact in (*graph.groups, *graph.buffers):
            assert fact.name in page.text
    assert sum(a.get("class") == "box" for a in page.named("g")) == sum(len(graph.groups) for graph in facts)


def test_the_tables_below_the_columns_tell_costs_and_reasons(sin_cos: GraphFacts) -> None:
    """Two loops compute cos: it is recomputed; the larger kernel comes first, an unknown size last."""
    cos = replace(sin_cos.nodes[1], inlined_into=("buf0", "buf1"))
    small = sin_cos.kernels[0]
    kernels = (replace(small, name="?", bytes_read=None), small, replace(small, name="mm", bytes_read=90_000))
    facts = replace(sin_cos, nodes=(cos, sin_cos.nodes[2]), kernels=kernels)
    tables = Tables(facts, layered(facts))
    moved = next(table for table in tables.costs() if table.title == "Moved most")
    assert [row.name for row in moved.rows] == ["mm", "cpp_fused_cos_sin_0", "?"]
    assert moved.rows[0].cells == ("1", "90.0 kB", "4.0 kB", "?")  # no share of a total that is not known
    told = {table.title: [(row.name, *row.cells) for row in table.rows] for table in tables.reasons()}
    ((name, outcome, why),) = told["Recomputed"]
    assert (name, outcome) == ("cos", "inlined into buf0 and buf1 (recomputed 2×)")
    assert why.startswith("consistent with: it has a single user")
    assert told["Realized"][0][:2] == ("sin", "realized as buf0")
    assert set(told) == {"Recomputed", "Realized"}


def test_every_name_of_the_tables_leads_to_a_row_that_bears_it() -> None:
    facts = analyze(load_run(MLP).graphs[1])
    rows = layered(facts)
    tables = Tables(facts, rows)
    named = [row for table in (*tables.costs(), *tables.reasons()) for row in table.rows]
    assert len(named) > 20
    for row in named:
        assert row.number is not None
        assert rows.items[row.number].name.startswith(row.name.split("…")[0])


def test_a_long_table_is_cut_and_says_so() -> None:
    facts = chain_of(ROWS + 7)
    tables = Tables(facts, layered(facts))
    realized = next(table for table in tables.reasons() if table.title == "Realized")
    assert (len(realized.rows), realized.left, realized.opened) == (ROWS, 7, False)
    page = Page(report_page(Run("big", (facts.graph,)), [facts]))
    assert "… 7 more rows; inductor-audit report RUN --why --full has all" in page.text


def test_pages_are_the_same_each_time() -> None:
    run = load_run(MLP)
    facts = [analyze(graph) for graph in run.graphs]
    assert report_page(run, facts) == report_page(run, facts)


def test_a_run_without_graphs_says_so() -> None:
    assert "No compiled graph was found here." in Page(report_page(Run("empty", ()), [])).text


def test_an_audit_page_shows_verdict_reasons_ladder_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit.html"
    base, ablated = str(ARMS / "baseline/sincos"), str(ARMS / "realize-thresholds/sincos")
    assert cli.main(["audit", base, ablated, "--ablation", "realize-thresholds", "--html", str(out)]) == 1
    assert "Audit of realize-thresholds: INERT" in capsys.readouterr().out
    text = Page(out.read_text(encoding="utf-8")).text
    assert "Audit of realize-thresholds INERT" in text
    assert "Reuse thresholds are consulted only for a value with more than one user: cos has 1 (sin)." in text
    assert "✓ applied: yes" in text
    assert "✗ lowering changed: no" in text
    assert "fx_graph_runnable.py:" in text
    assert "scheduler nodes 1 1 same" in text


def test_a_diff_page_shows_settings_and_changes(tmp_path: Path) -> None:
    out = tmp_path / "diff.html"
    cli.main(["diff", str(ARMS / "baseline/sincos"), str(ARMS / "inlining/sincos"), "--html", str(out)])
    text = Page(out.read_text(encoding="utf-8")).text
    assert "DIFFERENT" in text
    assert "inlined into buf0 → realized as buf0" in text
    assert "scheduler nodes 1 2 +1" in text


def test_export_writes_the_page_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.html"
    assert cli.main(["export", str(MLP), "--to", "html", "--out", str(out)]) == 0
    assert cli.main(["export", str(MLP), "--to", "html"]) == 0
    assert capsys.readouterr().out == out.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(MLP), "--html", "/no/such/folder/x.html"]) == 2
    assert "cannot write /no/such/folder/x.html" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ ablation plot


def arm(name: str, role: Role, ratio: float | None, why_not: str | None = None) -> ArmResult:
    run = ArmRun(
        ArmSpec(name, role, (name,), (), None if role is Role.BASELINE else "baseline"), Status.FINE, Path(name)
    )
    whole = None if ratio is None else Ratio(0.002, ratio, (ratio * 0.9, ratio * 1.1))
    time = (
        None if whole is None else ArmTime(whole, {}, why_not is None, why_not, None if name == "cse" else (0.97, 1.03))
    )
    verdict = Verdict.EFFECTIVE if role is Role.ABLATION else None
    return ArmResult(run, verdict, why="A reason. Another.", time=time)


@pytest.fixture
def script() -> ScriptResult:
    arms = (
        arm("baseline", Role.BASELINE, 1.0, "no ablation"),
        arm("control", Role.CONTROL, 1.01, "no ablation"),
        arm("fusion", Role.ABLATION, 2.0),
        arm("cse", Role.ABLATION, 7.25, "INERT: it did nothing"),
        arm("freezing", Role.ABLATION, None),
    )
    return ScriptResult(Script("a.py", ("--n", "3"), "a"), arms, (0.97, 1.03), ("control",))


def test_the_plot_places_ratios_on_a_logarithmic_scale(script: ScriptResult) -> None:
    drawn = plot(script)
    assert drawn is not None
    rows = {row.label: row for row in drawn.rows}
    assert list(rows) == ["control", "fusion", "cse"]
    low, middle, high = rows["fusion"].span or (0, 0, 0)
    assert drawn.one < low < middle < high < drawn.value_x
    ticks = {text: x for x, text in drawn.ticks}
    assert ticks["1×"] == drawn.one
    band = rows["fusion"].band
    assert band is not None
    assert drawn.one - band[0] == pytest.approx(band[1] - drawn.one, abs=0.5)
    assert rows["cse"].band is None
    assert rows["control"].hollow


def test_no_ratio_is_drawn_or_told_without_a_proof(script: ScriptResult) -> None:
    drawn = plot(script)
    assert drawn is not None
    unproven = next(row for row in drawn.rows if row.label == "cse")
    assert unproven.span is None
    assert unproven.value == "not credited: INERT"
    text = ablate_page(LabResult((script,)))
    assert "7.25" not in text
    assert "2.000 [1.800, 2.200]" in text
    assert sum(tag == "circle" for tag, _ in Page(text).tags) == 2


def test_an_experiment_without_times_has_no_plot(script: ScriptResult) -> None:
    untimed = replace(script, arms=tuple(replace(one, time=None) for one in script.arms), band=None)
    assert plot(untimed) is None
    assert "Time beside the baseline" not in ablate_page(LabResult((untimed,)))


# ----------------------------------------------------------------------------------------------------------- notebooks


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(sin_cos: GraphFacts) -> None:
    shown = Display(sin_cos)
    (frame,) = Page(shown._repr_html_()).named("iframe")
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == shown.page
    assert "cpp_fused_cos_sin_0" in shown.page


def test_the_extension_registers_every_result(sin_cos: GraphFacts, script: ScriptResult) -> None:
    pages: dict[type, Any] = {}
    texts: dict[type, Any] = {}

    class Formatter:
        """As much of IPython's formatters as an extension touches."""

        def __init__(self, known: dict[type, Any]) -> None:
            self.for_type = known.__setitem__

    class Printer:
        said = ""

        def text(self, text: str) -> None:
            self.said += text

    shell = SimpleNamespace(
        display_formatter=SimpleNamespace(formatters={"text/html": Formatter(pages), "text/plain": Formatter(texts)})
    )
    load_ipython_extension(shell)
    audit = AuditResult("fusion", Verdict.INERT, None, ())
    diff = diff_runs(load_run(MLP), load_run(MLP))
    for result, words in (
        (sin_cos, "2 ops → 1 scheduler node"),
        (audit, "Audit of fusion: INERT"),
        (LabResult((script,)), "Ablations of a.py --n 3"),
        (load_run(MLP), "model__0_backward"),
        (diff, "equal"),
    ):
        assert pages[type(result)](result).startswith("<iframe sandbox")
        printer = Printer()
        texts[type(result)](result, printer, False)
        assert words in printer.said
