"""What an experiment is shown as: no ratio without a proof, text made harmless, numbers for programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.facts import Summary
from analyzer.lab.records import (
    Agreement,
    ArmResult,
    ArmRun,
    ArmSpec,
    ArmTime,
    Effect,
    Factorial,
    LabResult,
    Ratio,
    Role,
    Script,
    ScriptResult,
    Status,
)
from analyzer.lab.tables import csv_text, latex_text, markdown_text
from analyzer.lab.verdicts import all_fine, any_baseline
from analyzer.verdict import Verdict
from analyzer.views.ablate import LabView
from analyzer.views.json import ablate_document, dumps

SUMMARY = Summary(scheduler_nodes=2, groups=1, kernel_calls=1, loop_nests=1, bytes_read=3000, bytes_written=1000)


def arm(name: str, verdict: Verdict | None = None, factor: float | None = None, why_not: str | None = None, **more):
    role = {"baseline": Role.BASELINE, "control": Role.CONTROL}.get(name, Role.ABLATION)
    spec = ArmSpec(name, role, (name,) if verdict else (), (), None if name == "baseline" else "baseline")
    run = ArmRun(spec, Status.FINE, Path("out") / name, None, 9.0, 2.5)
    whole = None if factor is None else Ratio(0.002 * factor, factor, (factor - 0.01, factor + 0.01))
    time = None if whole is None else ArmTime(whole, {"g0": whole, "g1": whole}, why_not is None, why_not)
    return ArmResult(run, verdict, time=time, after=SUMMARY, agreement=Agreement(True, 0.0, 0.0), **more)


def failed(name: str, status: Status, why: str) -> ArmResult:
    spec = ArmSpec(name, Role.ABLATION, (name,), (), "baseline")
    return ArmResult(ArmRun(spec, status, Path(name), why), Verdict.UNDECIDED, None, f"{status}: {why}")


@pytest.fixture
def result() -> LabResult:
    arms = (
        arm("baseline", factor=1.0, why_not="no ablation"),
        arm("control", factor=1.003, why_not="no ablation"),
        arm("fusion", Verdict.EFFECTIVE, 1.5, masked_by=None, why="Gone. All of it. Really."),
        arm("inlining", Verdict.EFFECTIVE, 1.001, "no measurable effect: noise", masked_by="fusion"),
        arm("cse", Verdict.INERT, 7.25, "INERT: the ablation did not do what its name says"),
        failed("vectorization", Status.TIMEOUT, "the time limit ended the command"),
    )
    return LabResult((ScriptResult(Script("a_b.py", ("--n", "3"), "a_b"), arms, (0.99, 1.01), ("control",)),))


def test_the_terminal_shows_a_ratio_only_as_a_proven_effect(result, show):
    text = show(LabView(result), width=100)
    assert "Ablations of a_b.py --n 3" in text
    assert "1.500 [1.490, 1.510]" in text
    assert "7.25" not in text
    assert "not credited: INERT" in text
    assert "No effect is shown: noise." in text
    assert "EFFECTIVE, masked by fusion" in text
    assert "vectorization: timeout" in text
    assert "the time limit ended the command" in text
    assert "from 0.990 to 1.010" in text


def test_a_reason_is_cut_after_two_sentences_unless_everything_is_asked_for(result, show):
    assert "Gone. All of it. …" in show(LabView(result), width=100)
    assert "Gone. All of it. Really." in show(LabView(result, full=True), width=100)


def test_results_that_differ_stand_out(result, show):
    far = replace(result.scripts[0].arms[2], agreement=Agreement(False, 0.5, 0.125, reason="g0: mismatch"))
    text = show(LabView(LabResult((replace(result.scripts[0], arms=(far,)),))), width=100)
    assert "DIFFER (by 0.1)" in text
    assert "Results: g0: mismatch" in text


def test_text_from_outside_reaches_no_terminal(show):
    evil = failed("fusion", Status.CRASHED, "\x1b[31m[bold]boo")
    text = show(LabView(LabResult((ScriptResult(Script("\x1b]0;x.py"), (evil,)),))), width=100)
    assert "\x1b" not in text
    assert "[bold]boo" in text


def test_effects_are_explained(result, show):
    effects = (Effect("shapley", ("fusion",), 0.3, (0.2, 0.4), 0.75),)
    found = Factorial(
        ("fusion", "cse"), Effect("total", ("fusion", "cse"), 0.4, (0.3, 0.5)), effects, "Two. Sentences."
    )
    text = show(LabView(LabResult((replace(result.scripts[0], factorial=found),))), width=100)
    assert "effects: Two. Sentences." in text
    assert "+0.300 [+0.200, +0.400]" in text
    none = replace(result.scripts[0], factorial=Factorial(("a", "b"), why_not="the arm a is INERT"))
    assert "effects: none, the arm a is INERT" in show(LabView(LabResult((none,))), width=100)


def test_csv_has_the_whole_and_every_graph_of_every_arm(result):
    rows = list(csv.DictReader(io.StringIO(csv_text(result))))
    fusion = [row for row in rows if row["arm"] == "fusion"]
    assert [row["graph"] for row in fusion] == ["", "g0", "g1"]
    assert (fusion[0]["ratio"], fusion[0]["ci95_low"], fusion[0]["credited"]) == ("1.5", "1.49", "True")
    (cse, *_) = [row for row in rows if row["arm"] == "cse"]
    assert (cse["ratio"], cse["credited"], cse["why_not_credited"][:5]) == ("7.25", "False", "INERT")
    (late,) = [row for row in rows if row["arm"] == "vectorization"]
    assert (late["status"], late["ratio"], late["scheduler_nodes"]) == ("timeout", "", "")


def test_markdown_is_a_table_with_the_papers_names(result):
    head, rule, *rows = markdown_text(result).strip().splitlines()
    assert head.count("|") == rule.count("|") == rows[0].count("|") == 11
    assert rows[2].startswith(
        "| without fusion | EFFECTIVE | 2 | 1 | 1 | 1 | 0.004 | 2.5 | 3 | 1.500 \\[1.490, 1.510\\] |"
    )
    assert "not credited: INERT" in rows[4]
    assert "7.25" not in "".join(rows)


def test_latex_escapes_what_latex_would_read(result):
    odd = replace(result.scripts[0], arms=(failed("a_b&c%$#{}~^\\", Status.CRASHED, ""),))
    text = latex_text(LabResult((odd,)))
    assert r"a\_b\&c\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    body = latex_text(result).splitlines()
    assert body[1] == r"\begin{tabular}{llrrrrrrrr}"
    assert all(line.count(" & ") == 9 for line in body if line.endswith(r"\\"))


def test_json_is_the_contract(result):
    document = json.loads(dumps(ablate_document(result)))
    assert document["schema_version"] == 1
    assert document["effects"] is None
    fusion = next(one for one in document["arms"] if one["ablation"] == "fusion")
    assert {"ablation", "verdict", "why", "summary", "time"} <= set(fusion)
    assert (fusion["verdict"], fusion["summary"]["scheduler_nodes"]) == ("EFFECTIVE", 2)
    assert {key: fusion["time"][key] for key in ("median_s", "ratio", "ci95", "credited")} == {
        "median_s": 0.003,
        "ratio": 1.5,
        "ci95": [1.49, 1.51],
        "credited": True,
    }
    late = next(one for one in document["arms"] if one["ablation"] == "vectorization")
    assert (late["status"], late["time"], late["summary"]) == ("timeout", None, None)


def test_when_an_experiment_came_out_well(result):
    script = result.scripts[0]
    assert any_baseline(script)
    assert not all_fine(script)
    good = replace(script, arms=script.arms[:3])
    assert all_fine(good)
    differs = replace(good.arms[2], agreement=Agreement(False))
    assert not all_fine(replace(good, arms=(*good.arms[:2], differs)))
    assert not all_fine(replace(good, arms=(*good.arms, replace(good.arms[2], untimed="gone"))))
    assert not any_baseline(replace(script, arms=script.arms[2:]))
