"""What an experiment is shown as: no ratio without a proof, text made harmless, numbers for programs."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from analyzer.capture import Progress
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
    Measuring,
    Ratio,
    Role,
    Script,
    ScriptResult,
    Status,
)
from analyzer.lab.tables import csv_text, latex_text, markdown_text
from analyzer.lab.verdicts import all_fine, any_baseline
from analyzer.verdict import Verdict
from analyzer.views.ablate import LabView, LiveArms
from analyzer.views.json import ablate_document, dumps

SUMMARY = Summary(scheduler_nodes=2, groups=1, kernel_calls=1, loop_nests=1, bytes_read=3000, bytes_written=1000)


def arm(name: str, verdict: Verdict | None = None, factor: float | None = None, why_not: str | None = None, **more):
    role = {"baseline": Role.BASELINE, "control": Role.CONTROL}.get(name, Role.ABLATION)
    spec = ArmSpec(name, role, (name,) if verdict else (), (), None if name == "baseline" else "baseline")
    run = ArmRun(spec, Status.FINE, Path("out") / name, None, 9.0, 2.5)
    whole = None if factor is None else Ratio(0.002 * factor, factor, (factor - 0.01, factor + 0.01))
    time = None if whole is None else ArmTime(whole, {"g0": whole, "g1": whole}, why_not is None, why_not, (0.99, 1.01))
    return ArmResult(run, verdict, time=time, after=SUMMARY, agreement=Agreement(True, 0.0, 0.0), **more)


def failed(name: str, status: Status, why: str) -> ArmResult:
    spec = ArmSpec(name, Role.ABLATION, (name,), (), "baseline")
    return ArmResult(
        ArmRun(spec, status, Path(name), why, log=Path("out/.lab") / f"{name}.log"),
        Verdict.UNDECIDED,
        None,
        f"{status}: {why}",
    )


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
    assert "the time limit ended the command\n  What the script said: out/.lab/vectorization.log" in text
    assert "from 0.990 to 1.010" in text


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_break_behind_their_signs_only(result, show, width):
    name = "baseline+max_autotune+freezing"
    spec = ArmSpec(name, Role.BASELINE)
    base = ArmResult(ArmRun(spec, Status.FINE, Path(name), compile_s=123.4), after=SUMMARY)
    script = replace(
        result.scripts[0], arms=(*result.scripts[0].arms, base, arm("loop-layout-reordering", Verdict.INERT))
    )
    words = show(LabView(LabResult((script,))), width=width).split()
    assert name in words or {"baseline+", "freezing"} <= set(words)
    assert "loop-layout-reordering" in words or {"loop-layout-", "reordering"} <= set(words)
    assert "123.4" in words


def test_compile_times_are_left_out_where_nothing_was_compiled(result, show):
    arms = tuple(replace(one, run=replace(one.run, compile_s=None)) for one in result.scripts[0].arms)
    assert "compile" not in show(LabView(LabResult((replace(result.scripts[0], arms=arms),))))
    assert "2.5 s" in show(LabView(result))


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
    effects = (
        Effect("shapley", ("fusion",), 0.3, (0.2, 0.4), 0.75),
        Effect("shapley", ("cse",), 0.1, (-0.1, 0.3), 0.25, measurable=False),
    )
    found = Factorial(
        ("fusion", "cse"), Effect("total", ("fusion", "cse"), 0.4, (0.3, 0.5)), effects, "Two. Sentences."
    )
    text = show(LabView(LabResult((replace(result.scripts[0], factorial=found),))), width=100)
    assert "effects: Two. Sentences." in text
    assert text.count("no measurable effect") == 2  # of an arm, and of cse
    assert "+0.300 [+0.200, +0.400]" in text
    none = replace(result.scripts[0], factorial=Factorial(("a", "b"), why_not="the arm a is INERT"))
    assert "effects: none, the arm a is INERT" in show(LabView(LabResult((none,))), width=100)


def test_csv_has_the_whole_and_every_graph_of_every_arm(result):
    rows = list(csv.DictReader(io.StringIO(csv_text(result))))
    fusion = [row for row in rows if row["arm"] == "fusion"]
    assert [row["graph"] for row in fusion] == ["", "g0", "g1"]
    assert (fusion[0]["ratio"], fusion[0]["ci95_low"], fusion[0]["credited"]) == ("1.5", "1.49", "True")
    assert (fusion[0]["noise_low"], fusion[0]["noise_high"], fusion[0]["sessions_left_out"]) == ("0.99", "1.01", "")
    (cse, *_) = [row for row in rows if row["arm"] == "cse"]
    assert (cse["ratio"], cse["credited"], cse["why_not_credited"][:5]) == ("7.25", "False", "INERT")
    (late,) = [row for row in rows if row["arm"] == "vectorization"]
    assert (late["status"], late["ratio"], late["scheduler_nodes"]) == ("timeout", "", "")


def test_markdown_is_a_table_with_the_papers_names(result):
    head, rule, *rows, gap, noise = markdown_text(result).strip().splitlines()
    assert (gap, noise[:7]) == ("", "Noise: ")
    assert head.count("|") == rule.count("|") == rows[0].count("|") == 11
    assert rows[2].startswith(
        "| without fusion | EFFECTIVE | 2 | 1 | 1 | 1 | 0.004 | 2.5 | 3 | 1.500 \\[1.490, 1.510\\] |"
    )
    assert "not credited: INERT" in rows[4]
    assert "7.25" not in "".join(rows)


def test_a_papers_table_says_what_arms_are_compared_with_and_leaves_out_what_nobody_knows(result):
    """As for a GPU that was not there: nothing was compiled or timed, and Triton kernels have no loop nests."""
    summary = Summary(scheduler_nodes=2)
    bases = [ArmSpec(name, Role.BASELINE) for name in ("baseline", "baseline+freezing")]
    arms = [
        ArmSpec(name, Role.ABLATION, (name,), (), f"baseline{more}") for name, more in (("a", ""), ("b", "+freezing"))
    ]
    rows = tuple(ArmResult(ArmRun(spec, Status.FINE, Path(spec.name)), after=summary) for spec in (*bases, *arms))
    script = ScriptResult(Script("s.py"), rows, notes=("No device: code for NVIDIA A_100",))
    lines = markdown_text(LabResult((script,))).splitlines()
    assert lines[0] == "| Arm | Verdict | Against | Nodes |"
    assert lines[5] == "| b | ablation | baseline+freezing | 2 |"
    assert lines[-1] == "No device: code for NVIDIA A\\_100"
    assert "% No device: code for NVIDIA A_100" in latex_text(LabResult((script,))).splitlines()


def test_the_terminal_shows_arms_below_what_they_are_compared_with(result, show):
    base = replace(
        arm("baseline", factor=1.0), run=ArmRun(ArmSpec("baseline+freezing", Role.BASELINE), Status.FINE, Path("b"))
    )
    frozen = arm("parameter-freezing", Verdict.EFFECTIVE, 1.25)
    frozen = replace(frozen, run=replace(frozen.run, spec=replace(frozen.spec, against="baseline+freezing")))
    orphan = replace(frozen, run=replace(frozen.run, spec=ArmSpec("cudagraphs", Role.ABLATION, against="gone")))
    arms = (base, orphan, *result.scripts[0].arms, frozen)
    text = show(LabView(LabResult((replace(result.scripts[0], arms=arms),))), width=120)
    _, counts, times, *_ = text.split("\n\n")
    names = ["baseline+freezing", "  parameter-freezing", "baseline", "  control", "  fusion", "  inlining", "  cse"]
    assert [line[:20].rstrip() for line in counts.splitlines()[1:]] == [*names, "  vectorization", "  cudagraphs"]
    assert [line[:20].rstrip() for line in times.splitlines()[1:]] == [*names, "  cudagraphs"]


def test_latex_escapes_what_latex_would_read(result):
    odd = replace(result.scripts[0], arms=(failed("a_b&c%$#{}~^\\", Status.CRASHED, ""),))
    text = latex_text(LabResult((odd,)))
    assert r"a\_b\&c\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    body = latex_text(result).splitlines()
    assert body[1].startswith("% Noise: two captures of the same (control) have ratios from 0.990 to 1.010")
    assert body[2] == r"\begin{tabular}{llrrrrrrrr}"
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


# ------------------------------------------------------------------------------------------------------ while it works


@dataclass(frozen=True)
class Work:
    """What an engine works at: an arm that is captured, or a script that is measured."""

    script: Script
    spec: ArmSpec | None = None


def said(**console: Any) -> tuple[LiveArms, io.StringIO]:
    out = io.StringIO()
    return LiveArms(Console(file=out, width=80, **console)), out


def test_a_log_gets_a_line_per_session_and_not_per_round(result):
    live, out = said()
    script = result.scripts[0].script
    with live:
        live.watch(script, "fusion", "waiting")
        live.tick(Work(script, ArmSpec("fusion", Role.ABLATION)), Progress(1.0, 0))
        live.watch(script, "fusion", "captured")
        for session, doing in ((1, "starting, 0 of 2 arms ready"), (1, "round 1 of 3"), (1, "round 2 of 3"), (2, "")):
            live.tick(Work(script), Measuring(session, 2, doing))
        live.watch(script, "", "measured")
    assert out.getvalue().splitlines() == [
        "a_b fusion: captured",
        "a_b: measuring, session 1 of 2",
        "a_b: measuring, session 2 of 2",
        "a_b: measured",
    ]


def test_a_terminal_shows_what_is_done_now_first_where_not_all_arms_fit(result):
    live, out = said(force_terminal=True, height=6, color_system=None)
    script = result.scripts[0].script
    with live:
        for number in range(8):
            live.watch(script, f"arm{number}", "captured")
        live.tick(Work(script), Measuring(2, 3, "round 7 of 40"))
    shown = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", out.getvalue().rpartition("state")[2])
    assert [" ".join(line.split()) for line in shown.splitlines()[1:5]] == [
        "a_b measuring, session 2 of 3: round 7 of 40",
        "a_b arm0 captured",
        "a_b arm1 captured",
        "and 6 others",
    ]
