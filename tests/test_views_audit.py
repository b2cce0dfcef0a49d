"""The views of audits, ablations and captures, for results reasoned out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from analyzer.ablations import ABLATIONS, find
from analyzer.artifacts.manifest import Finding, GraphEntry, Manifest
from analyzer.capture import CaptureResult, Progress
from analyzer.facts import Summary
from analyzer.verdict import AuditResult, Citation, GraphAudit, Rung, RungName, Verdict
from analyzer.views.ablations import AblationsView, AblationView
from analyzer.views.audit import AuditView
from analyzer.views.capture import CaptureView, ProgressLines
from analyzer.views.json import ablations_document, audit_document, dumps

Show = Callable[..., str]

BASE = Summary(2, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 4000, 4000, 4000)
REALIZED = replace(BASE, realized=2, inlined=0, scheduler_nodes=2, removed_buffers=1)
CONFIG = "thresholds/torch_compile_debug/run_2026/torchinductor/model__0_inference_0.0/fx_graph_runnable.py"


@pytest.fixture
def inert() -> AuditResult:
    rungs = (
        Rung(RungName.REQUESTED, True, (Citation("", None, "audited as `realize-thresholds`"),)),
        Rung(RungName.APPLIED, True, (Citation(CONFIG, 31, "realize_reads_threshold = 0"),)),
        Rung(RungName.LOWERING, False, (Citation("ir_pre_fusion.txt", 1, "1 scheduler node in both arms"),)),
        Rung(RungName.SCHEDULING, None),
    )
    graph = GraphAudit(
        "model__0_inference_0.0",
        Verdict.INERT,
        "1 value is inlined in both arms. Every inlined value has a single user.",
        rungs=rungs,
        before=BASE,
        after=BASE,
        counted="inlined values",
        left_before=("cos",),
        left_after=("cos",),
    )
    return AuditResult("realize-thresholds", Verdict.INERT, None, (graph,))


@pytest.fixture
def masked(inert: AuditResult) -> AuditResult:
    graph = replace(
        inert.graphs[0],
        verdict=Verdict.EFFECTIVE,
        why="No inlined value is left; fusion put both ops into one group again.",
        masked_by="fusion",
        rungs=(),
        after=REALIZED,
        left_after=(),
    )
    return AuditResult("inlining", Verdict.EFFECTIVE, "fusion", (graph,))


def test_inert_audit(show: Show, golden: Callable[[str], str], inert: AuditResult) -> None:
    assert show(AuditView(inert), 80) == golden("audit_inert_80.txt")


def test_masked_audit(show: Show, golden: Callable[[str], str], masked: AuditResult) -> None:
    assert show(AuditView(masked), 80) == golden("audit_masked_80.txt")


def test_every_verdict_is_told_in_plain_words(show: Show, inert: AuditResult) -> None:
    told = {show(AuditView(replace(inert, verdict=verdict, graphs=()))) for verdict in Verdict}
    assert len(told) == len(Verdict)
    for text in told:
        assert len(text.splitlines()[1]) > 20


def test_audits_of_many_graphs_are_cut(show: Show, inert: AuditResult) -> None:
    graphs = tuple(replace(inert.graphs[0], name=f"model__{i}") for i in range(8))
    text = show(AuditView(replace(inert, graphs=graphs)))
    assert "model__4: INERT" in text
    assert "model__5" not in text
    assert "… 3 more graphs; --full shows all" in text
    assert "model__7: INERT" in show(AuditView(replace(inert, graphs=graphs), full=True))


def test_a_graph_that_one_arm_lacks(show: Show, inert: AuditResult) -> None:
    graph = replace(inert.graphs[0], verdict=Verdict.UNDECIDED, after=None, rungs=())
    lines = show(AuditView(replace(inert, verdict=Verdict.UNDECIDED, graphs=(graph,)))).splitlines()
    assert "  scheduler nodes          1      -  not known" in lines


@pytest.mark.parametrize("hostile", ["[bold]x", "\x1b[31m", "n" * 300, "a\r\nb"])
def test_hostile_text_stays_text(show: Show, inert: AuditResult, hostile: str) -> None:
    rung = Rung(RungName.APPLIED, False, (Citation(hostile, 3, hostile),))
    graph = GraphAudit(hostile, Verdict.INERT, hostile, hostile, (rung,), BASE, BASE, hostile, (hostile,), (hostile,))
    result = AuditResult(hostile, Verdict.INERT, hostile, (graph,), (hostile,))
    text = show(AuditView(result, full=True), 80)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert max(map(len, text.splitlines())) <= 80
    assert "[bold]x" in text or "[bold]" not in hostile


def test_audit_document_follows_the_contract(masked: AuditResult, inert: AuditResult) -> None:
    document = json.loads(dumps(audit_document(masked)))
    graph = document["graphs"][0]
    assert (document["schema_version"], document["ablation"]) == (1, "inlining")
    assert (document["verdict"], document["masked_by"]) == ("EFFECTIVE", "fusion")
    assert (graph["before"]["scheduler_nodes"], graph["after"]["scheduler_nodes"]) == (1, 2)
    rungs = audit_document(inert)["graphs"][0]["rungs"]
    assert rungs[1] == {
        "rung": "applied",
        "held": True,
        "evidence": [{"file": CONFIG, "line": 31, "text": "realize_reads_threshold = 0"}],
    }
    assert rungs[3]["held"] is None


# --------------------------------------------------------------------------------------------------- ablations, capture


def test_every_ablation_is_listed_once(show: Show) -> None:
    text = show(AblationsView(ABLATIONS), 120)
    for entry in ABLATIONS:
        assert sum(line.startswith(f"{entry.name} ") for line in text.splitlines()) == 1


@pytest.mark.parametrize("entry", ABLATIONS, ids=lambda entry: entry.name)
def test_the_page_of_an_ablation_says_how_it_is_switched(show: Show, entry: object) -> None:
    text = show(AblationView(entry), 200)  # type: ignore[arg-type]
    assert "Settings of the ablated arm:" in text or "Switches of the capture hook:" in text


def test_versions_of_a_setting_are_told(show: Show) -> None:
    assert "use_dce = False (from torch 2.11 on)" in show(AblationView(find("dead-node-elimination")))
    document = ablations_document([find("dead-node-elimination")])["ablations"][0]
    assert document["settings"] == [
        {"key": "torch._inductor.config.use_dce", "value": "False", "since": "2.11", "until": None}
    ]


def captured(*findings: Finding, graphs: int = 1) -> CaptureResult:
    entries = tuple(GraphEntry(f"model__{i}") for i in range(graphs))
    command = ("python", "a.py")
    manifest = Manifest("2.13.0", "3.11", "cpu", command, "/", duration_s=6.14, graphs=entries, findings=findings)
    return CaptureResult(Path("/runs/base"), 0, manifest)


def test_a_good_capture_says_where_and_what_next(show: Show) -> None:
    assert show(CaptureView(captured())).splitlines() == [
        "captured 1 graph in /runs/base  (torch 2.13.0 · cpu · 6.1 s)",
        "next: inductor-audit report /runs/base",
    ]


def test_a_flawed_capture_says_what_is_wrong_and_what_helps(show: Show) -> None:
    finding = Finding("cache-hit", "2 cache hits: graphs that were not compiled have no artifacts", "Clear the cache.")
    assert show(CaptureView(captured(finding, graphs=0))).splitlines() == [
        "captured 0 graphs in /runs/base  (torch 2.13.0 · cpu · 6.1 s)",
        "  cache-hit: 2 cache hits: graphs that were not compiled have no artifacts",
        "    Clear the cache.",
    ]


def test_progress_is_told_now_and_then_on_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    for terminal in (True, False):
        lines = ProgressLines(Console(force_terminal=terminal, color_system=None, width=80))
        for tenth in range(250):
            lines(Progress(tenth / 10, int(tenth >= 30)))
        told = capsys.readouterr().out.splitlines()
        assert told == (
            ["capturing: 3 s, 1 graph so far", "capturing: 13 s, 1 graph so far", "capturing: 23 s, 1 graph so far"]
            if terminal
            else []
        )


def test_full_audit_lists_all_that_is_left_and_whole_paths(show: Show, inert: AuditResult) -> None:
    left = tuple(f"cos_{i}" for i in range(30))
    text = show(AuditView(replace(inert, graphs=(replace(inert.graphs[0], left_after=left),)), full=True), 400)
    assert "Left to ablate (inlined values): 1 before, 30 after (cos_0, cos_1, " in text
    assert "cos_29)" in text
    assert f"{CONFIG}:31  realize_reads_threshold = 0" in text


def test_files_outside_the_graph_keep_their_folder(show: Show, inert: AuditResult) -> None:
    rung = Rung(
        RungName.APPLIED, True, (Citation("/site/inside/switches.py", 45, "x"), Citation("manifest.json", 1, "y"))
    )
    text = show(AuditView(replace(inert, graphs=(replace(inert.graphs[0], rungs=(rung,)),))))
    assert "      …/inside/switches.py:45  x\n      manifest.json:1  y\n" in text
